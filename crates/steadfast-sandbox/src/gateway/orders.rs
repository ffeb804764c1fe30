use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use steadfast_spec::{Form, OrderRequest, OrderStatus};

use crate::{
    faults::{Fault, Stage},
    gateway::{
        book::Owner,
        engine::{Engine, fault_page},
        passage::{Caller, Passage},
        placement_fault::{Application, application, booked_as, intermediary, invented_id, repeats_id},
        plan::Strike,
        reply::{Action, Reply},
    },
    wire::page::{Page, refusal},
};

impl Engine {
    /// §4.4.
    pub(crate) fn place_order(&mut self, passage: &mut Passage<'_>, caller: Caller, form: &Form) -> Reply {
        // §2: an instrument identifier has one of three forms.
        let order = OrderRequest::from_fields(form.iter()).ok();
        let Some((order, class)) =
            order.and_then(|order| order.sym_id().asset_class().map(|class| (order, class)))
        else {
            return refusal::input_validation().into();
        };
        if !self.directory.user(caller.user).app.may_trade(class) {
            return refusal::forbidden().into();
        }
        let owner = Owner {
            user: caller.user,
            session: caller.session.map_or(0, |session| session.number),
            intent: passage.incoming.intent.clone(),
        };
        let strike = self.strike(Stage::Placement, passage);
        let before = strike.filter(|strike| repeats_id(strike.fault)).and_then(|_| {
            let mut orders = self.book.iter().rev().filter(|order| order.user == caller.user);
            orders.next().map(|order| order.order_id.clone())
        });
        let application = match strike {
            // Without an earlier order there is no id to repeat.
            Some(strike) if repeats_id(strike.fault) && before.is_none() => Application::Now,
            Some(strike) => application(strike.fault),
            None => Application::Now,
        };
        let booked = strike.and_then(|strike| booked_as(strike.fault));
        let order_id = match application {
            Application::Now => Some(self.book.apply(&owner, &order, passage.now, self.draw)),
            Application::Twice => {
                let first = self.book.apply(&owner, &order, passage.now, self.draw);
                self.book.apply(&owner, &order, passage.now, self.draw);
                Some(first)
            }
            Application::Late => {
                let at = passage.now.saturating_add(self.late_by(strike, &passage.key));
                self.late.insert((at, self.record.requests), (owner, order));
                None
            }
            Application::Never => None,
        };
        if let (Some(order_id), Some(status)) = (&order_id, booked) {
            self.book.settle_as(order_id, status, passage.now);
        }
        match strike {
            None => placed(order_id).into(),
            Some(strike) => {
                let told = before.or_else(|| invented_id(strike.fault, self.record.requests)).or(order_id);
                self.placement_reply(strike, told, &passage.key)
            }
        }
    }

    fn placement_reply(&self, strike: Strike, order_id: Option<String>, key: &str) -> Reply {
        if let Some(status) = intermediary(strike.fault) {
            let after = self.settings.gateway_timeout.mul_f64(self.draw.fraction("proxy-after", key));
            let after = if self.draw.below("proxy-waits", key, 2) == 0 { Duration::ZERO } else { after };
            let page = match self.draw.below("proxy-body", key, 3) {
                0 => Page { status, ..Page::html(NO_UPSTREAM_PAGE.to_owned()) },
                1 => Page::text(status, NO_UPSTREAM),
                _ => Page::text(status, ""),
            };
            return Reply { after, action: Action::Respond(page) };
        }
        // A 504 is answered after the gateway's timeout, everything else at once.
        let after = match fault_page(strike.fault) {
            Some(page) if page.status == StatusCode::GATEWAY_TIMEOUT => self.settings.gateway_timeout,
            _ => Duration::ZERO,
        };
        let action = match strike.fault {
            Fault::Placement200Truncated => Action::Respond(placed(order_id).cut_in_half()),
            Fault::Placement200NoOrderId => Action::Respond(Page::ok(json!({"msg": PLACED}))),
            Fault::Placement200Error => Action::Respond(Page::json(
                StatusCode::OK,
                &json!({"s": "error", "msg": "Order could not be placed"}),
            )),
            Fault::PlacementResetApplied | Fault::PlacementResetNotApplied => Action::Reset,
            Fault::Placement400BadRequest => Action::Respond(refusal::bad_request()),
            Fault::Placement400Validation => Action::Respond(refusal::input_validation()),
            Fault::Placement400UnknownApplied | Fault::Placement400UnknownNotApplied => {
                Action::Respond(Page::error(StatusCode::BAD_REQUEST, "Order could not be processed now"))
            }
            fault => Action::Respond(fault_page(fault).unwrap_or_else(|| placed(order_id))),
        };
        Reply { after, action }
    }

    fn late_by(&self, strike: Option<Strike>, key: &str) -> Duration {
        let (least, most) = match strike.and_then(|strike| intermediary(strike.fault)) {
            Some(_) => BEHIND_A_PROXY,
            None => self.settings.late_by,
        };
        let drawn = || least + most.saturating_sub(least).mul_f64(self.draw.fraction("late-by", key));
        strike.and_then(|strike| strike.late_by).unwrap_or_else(drawn)
    }

    /// §4.5. The answer for an order that is not open is not shown; here the input-validation error.
    pub(crate) fn cancel_order(&mut self, passage: &Passage<'_>, caller: Caller) -> Page {
        let order_id = passage.query.get("orderId").unwrap_or_default();
        if let Some(page) = self.refuse_stranger(order_id, caller) {
            return page;
        }
        match self.book.finish(order_id, OrderStatus::Cancelled, passage.now) {
            Ok(()) => Page::ok(json!({"orderId": order_id, "msg": "Order cancelled"})),
            Err(_) => refusal::input_validation(),
        }
    }

    /// Path and fields are not shown; here the given fields of §4.4, beside `orderId`, replace the
    /// order's own.
    pub(crate) fn modify_order(&mut self, now: Duration, caller: Caller, form: &Form) -> Page {
        let order_id = form.get("orderId").unwrap_or_default();
        if let Some(page) = self.refuse_stranger(order_id, caller) {
            return page;
        }
        let Some(old) = self.book.find(order_id).map(|order| order.request.form()) else {
            return refusal::input_validation();
        };
        let kept = old.iter().filter(|(name, _)| !form.contains(name));
        let changed = form.iter().filter(|(name, _)| *name != "orderId");
        let Ok(request) = OrderRequest::from_fields(kept.chain(changed)) else {
            return refusal::input_validation();
        };
        match self.book.modify(order_id, request, now) {
            Ok(()) => Page::ok(json!({"orderId": order_id, "msg": "Order modified"})),
            Err(_) => refusal::input_validation(),
        }
    }

    /// §7, 403: accessing another user's resource. An unknown order id is an input error.
    fn refuse_stranger(&self, order_id: &str, caller: Caller) -> Option<Page> {
        match self.book.find(order_id) {
            None => Some(refusal::input_validation()),
            Some(order) if order.user != caller.user => Some(refusal::forbidden()),
            Some(_) => None,
        }
    }
}

const PLACED: &str = "Order placed";
/// The text of an intermediary that got no answer.
const NO_UPSTREAM: &str = "upstream connect error or disconnect/reset before headers";
const NO_UPSTREAM_PAGE: &str =
    "<html><head><title>Error</title></head><body><center><h1>Error</h1></center></body></html>";
/// How much later an order comes into existence after an intermediary has given up on the gateway.
const BEHIND_A_PROXY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(29));

fn placed(order_id: Option<String>) -> Page {
    Page::ok(json!({"orderId": order_id.unwrap_or_default(), "msg": PLACED}))
}
