use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use steadfast_spec::{Form, OrderRequest, OrderStatus, OrderType};

use crate::{
    faults::{Fault, Stage},
    gateway::{
        book::{BookedOrder, Owner},
        engine::{Caller, Engine, Passage, fault_page},
        plan::Strike,
        reply::{Action, Reply},
        spec_reading::{ListOrder, ListScope, ListShows, RejectedOrders, SpecReading},
    },
    wire::page::{Hint, Page, refusal},
};

/// The effect of a placement fault on the order itself.
#[derive(Clone, Copy)]
enum Application {
    Now,
    Twice,
    Late,
    Never,
}

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

    /// §4.5: the session's orders as an array, or `no-data`.
    pub(crate) fn list_orders(&mut self, passage: &mut Passage<'_>, caller: Caller) -> Page {
        let fault = self.strike(Stage::List, passage).map(|strike| strike.fault);
        if let Some(page) = fault.and_then(fault_page) {
            return page;
        }
        let fault = fault.filter(|&it| it != Fault::ListCachedUnlessAsked || !passage.incoming.no_cache);
        // A stale list is the whole list of that time, with its orders and their statuses.
        let (age, hint) = match fault {
            Some(Fault::ListStale) => (self.settings.stale_by, None),
            Some(Fault::ListCachedAge | Fault::ListCachedUnlessAsked) => {
                let age = self.settings.cached_for;
                (age, Some(Hint::Age(age.as_secs().max(1))))
            }
            Some(Fault::ListCachedHit) => (self.settings.cached_for, Some(Hint::CacheHit)),
            _ => (Duration::ZERO, None),
        };
        let Some(now) = passage.now.checked_sub(age) else { return Page { hint, ..Page::no_data() } };
        let session = caller.session.map(|session| session.number);
        let reading = self.settings.interpretation;
        let open_only = fault == Some(Fault::ListOpenOnly) || reading.list_shows == ListShows::OpenOnly;
        let mut orders: Vec<&BookedOrder> = self
            .book
            .iter()
            .filter(|order| order.user == caller.user && order.applied <= now)
            .filter(|order| reading.list_scope == ListScope::User || Some(order.session) == session)
            .filter(|order| !open_only || order.status(now) == OrderStatus::Open)
            .filter(|order| {
                reading.rejected == RejectedOrders::Kept || order.status(now) != OrderStatus::Rejected
            })
            .filter(|order| order.applied.saturating_add(self.unseen_for(order)) <= now)
            .collect();
        match fault {
            Some(Fault::ListEmpty) => orders.clear(),
            Some(Fault::ListPartial) => orders = orders.into_iter().skip(1).step_by(2).collect(),
            Some(Fault::ListDuplicatedIds) => {
                orders = orders.into_iter().flat_map(|order| [order, order]).collect();
            }
            _ => {}
        }
        match reading.list_order {
            ListOrder::OldestFirst => {}
            ListOrder::NewestFirst => orders.reverse(),
            ListOrder::Shuffled => {
                let read = self.record.requests.to_string();
                orders.sort_by_cached_key(|order| self.draw.text(&read, &order.order_id));
            }
        }
        let page = match fault {
            Some(Fault::ListHuge) => huge(&orders, now, &reading),
            Some(Fault::ListHugeBare) => huge_bare(&orders, now, &reading, self.record.requests),
            _ if orders.is_empty() => Page::no_data(),
            None => rows(orders, now, &reading),
            Some(fault) => Page::ok(
                orders.into_iter().map(|order| listed(order, fault, now, &reading)).collect::<Vec<Value>>(),
            ),
        };
        let page = Page { hint, ..page };
        if fault == Some(Fault::ListTruncated) { page.cut_in_half() } else { page }
    }

    /// Returns for how long after it was applied an order is not listed.
    fn unseen_for(&self, order: &BookedOrder) -> Duration {
        let most = self.settings.interpretation.visibility_lag.most();
        if most.is_zero() {
            return most;
        }
        most.mul_f64(self.draw.fraction("visibility-lag", &order.order_id))
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

fn application(fault: Fault) -> Application {
    match fault {
        Fault::PlacementDoubleForward => Application::Twice,
        Fault::Placement200Error | Fault::Placement400BadRequest | Fault::Placement400Validation => {
            Application::Never
        }
        Fault::Placement200Truncated | Fault::Placement200NoOrderId => Application::Now,
        fault if fault.as_str().ends_with("-not-applied") => Application::Never,
        fault if fault.as_str().ends_with("-late") => Application::Late,
        _ => Application::Now,
    }
}

/// Returns the status with which an intermediary answers in the gateway's place.
fn intermediary(fault: Fault) -> Option<StatusCode> {
    let (status, _) = fault.as_str().strip_prefix("placement.proxy-")?.split_once('-')?;
    status.parse().ok()
}

/// Returns true if the answer has the id of the previous order.
fn repeats_id(fault: Fault) -> bool {
    matches!(fault, Fault::PlacementRepeatedIdApplied | Fault::PlacementRepeatedIdNotApplied)
}

/// Returns the id of no order, if the answer has one.
fn invented_id(fault: Fault, request: u64) -> Option<String> {
    let invents = matches!(fault, Fault::PlacementInventedIdApplied | Fault::PlacementInventedIdNotApplied);
    invents.then(|| format!("88{request:010}"))
}

/// Returns the status in which a fault books an order.
fn booked_as(fault: Fault) -> Option<OrderStatus> {
    match fault {
        Fault::PlacementBookedCompleted => Some(OrderStatus::Completed),
        Fault::PlacementBookedRejected => Some(OrderStatus::Rejected),
        Fault::PlacementBookedCancelled => Some(OrderStatus::Cancelled),
        _ => None,
    }
}

fn rows(orders: Vec<&BookedOrder>, now: Duration, reading: &SpecReading) -> Page {
    Page::ok(orders.into_iter().map(|order| order.record(now, reading)).collect::<Vec<_>>())
}

/// Returns the real orders and fifty thousand fictitious ones: some 10 MB.
fn huge(orders: &[&BookedOrder], now: Duration, reading: &SpecReading) -> Page {
    let real = orders.iter().map(|order| json!(order.record(now, reading)).to_string());
    let nobodys = (0..50_000).map(|number| {
        format!(
            r#"{{"orderId":"99{number:010}","symId":"EQT_NOBODY_EQ_NSE","side":"sell","qty":1,"type":"market","product":"intraday","validity":"day","status":"completed","legType":"main"}}"#
        )
    });
    let records: Vec<String> = real.chain(nobodys).collect();
    Page::json(StatusCode::OK, &Value::Null).with_body(format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(",")))
}

/// Returns the real orders and a hundred thousand ids that no other list has: some 3 MB.
fn huge_bare(orders: &[&BookedOrder], now: Duration, reading: &SpecReading, read: u64) -> Page {
    let real = orders.iter().map(|order| json!(order.record(now, reading)).to_string());
    let bare = (0..100_000).map(|number| format!(r#"{{"orderId":"98{read:06}{number:06}"}}"#));
    let records: Vec<String> = real.chain(bare).collect();
    Page::json(StatusCode::OK, &Value::Null).with_body(format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(",")))
}

/// Returns an order as the list shows it under a fault.
fn listed(order: &BookedOrder, fault: Fault, now: Duration, reading: &SpecReading) -> Value {
    let mut record = json!(order.record(now, reading));
    let Some(fields) = record.as_object_mut() else { return record };
    match fault {
        Fault::ListNumericIds => {
            if let Ok(id) = order.order_id.parse::<u64>() {
                fields.insert("orderId".into(), id.into());
            }
        }
        Fault::ListUnknownEnums => {
            fields.insert("status".into(), "trigger pending".into());
        }
        Fault::ListMissingLegType => {
            fields.remove("legType");
        }
        Fault::ListMissingPrice => {
            fields.remove("limitPrice");
            fields.remove("trigPrice");
        }
        Fault::ListPricesReformatted => {
            for name in ["qty", "limitPrice", "trigPrice"] {
                if let Some(value) = fields.get_mut(name) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    *value = with_four_decimals(&text).into();
                }
            }
        }
        Fault::ListMarketAsLimit if order.request.order_type() == OrderType::Market => {
            fields.insert("type".into(), "limit".into());
            fields.insert("limitPrice".into(), "100.00".into());
        }
        _ => {}
    }
    record
}

fn with_four_decimals(text: &str) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}.{fraction:0<4}")
}
