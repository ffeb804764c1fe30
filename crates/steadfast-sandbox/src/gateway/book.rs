use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use steadfast_spec::{LegType, OrderRequest, OrderStatus, OrderType, Product, Side, Validity};

use crate::gateway::{
    directory::UserIndex,
    draw::Draw,
    spec_reading::{OrderIds, Remarks},
};

/// Every order that was ever applied, with its true owner.
#[derive(Debug, Default)]
pub(crate) struct OrderBook {
    orders: Vec<BookedOrder>,
    by_id: BTreeMap<String, usize>,
    ids: OrderIds,
    /// The fields that each user's last order through the gateway was sent with.
    remarks: BTreeMap<UserIndex, String>,
}

/// One order, or one leg of one.
#[derive(Clone, Debug)]
pub(crate) struct BookedOrder {
    pub(crate) order_id: String,
    pub(crate) user: UserIndex,
    /// The number of the login session in which it was placed.
    pub(crate) session: u64,
    /// The test's name for its intent; never on the wire.
    pub(crate) intent: Option<String>,
    pub(crate) request: OrderRequest,
    pub(crate) leg: LegType,
    pub(crate) applied: Duration,
    course: Course,
    /// The text that it was sent with; changes leave it alone.
    remarks: Option<String>,
    /// The remarks that it shows where they are copied from one order to another.
    copied: Option<String>,
}

/// How the market executes an order, decided when it is applied (§3: transitions are not shown).
#[derive(Clone, Copy, Debug)]
enum Course {
    /// It stays open until this instant and then has this status.
    Until(Duration, OrderStatus),
    /// It stays open.
    Open,
}

/// A change that is not possible because the order is not open.
#[derive(Debug)]
pub(crate) struct NotOpen;

/// The owner of an order.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) user: UserIndex,
    pub(crate) session: u64,
    pub(crate) intent: Option<String>,
}

impl OrderBook {
    pub(crate) fn new(ids: OrderIds) -> Self {
        Self { ids, ..Self::default() }
    }

    /// Applies an order that came through the gateway and returns its id.
    pub(crate) fn apply(
        &mut self,
        owner: &Owner,
        request: &OrderRequest,
        now: Duration,
        draw: Draw,
    ) -> String {
        let order_id = self.apply_foreign(owner, request, now, draw);
        if let Some(text) = request.extra("remarks").filter(|text| !text.is_empty()) {
            self.remarks.insert(owner.user, text.to_owned());
        }
        order_id
    }

    /// Applies an order from elsewhere; later ones never show its remarks. Bracket and cover orders bring their exit legs
    /// with them (§2).
    pub(crate) fn apply_foreign(
        &mut self,
        owner: &Owner,
        request: &OrderRequest,
        now: Duration,
        draw: Draw,
    ) -> String {
        let before = self.remarks.get(&owner.user).cloned();
        let main = self.insert(owner, request.clone(), LegType::Main, now, draw);
        let copies = before.is_some() && draw.fraction("remarks-copied", &main) < 0.3;
        let own = request.extra("remarks").map(str::to_owned);
        self.show_remarks(&main, if copies { before } else { own.clone() });
        let legs: &[LegType] = match request.product() {
            Product::Bracket => &[LegType::StopLoss, LegType::Target],
            Product::Cover => &[LegType::StopLoss],
            _ => &[],
        };
        for leg in legs {
            if let Some(exit) = exit_leg(request) {
                // A leg belongs to its order, not to another intent.
                let owner = Owner { intent: None, ..owner.clone() };
                let leg = self.insert(&owner, exit, *leg, now, draw);
                self.show_remarks(&leg, own.clone());
            }
        }
        main
    }

    fn show_remarks(&mut self, order_id: &str, copied: Option<String>) {
        if let Some(&index) = self.by_id.get(order_id) {
            self.orders[index].copied = copied;
        }
    }

    fn insert(
        &mut self,
        owner: &Owner,
        request: OrderRequest,
        leg: LegType,
        now: Duration,
        draw: Draw,
    ) -> String {
        let number = self.orders.len() + 1;
        let order_id = match self.ids {
            OrderIds::Digits => format!("26{number:010}"),
            OrderIds::LeadingZeros => format!("{number:012}"),
            OrderIds::Uuid => uuid(&draw.text("order-id", &number.to_string())),
        };
        let course = match leg {
            LegType::Main => course(&request, &order_id, now, draw),
            LegType::StopLoss | LegType::Target => Course::Open,
        };
        self.by_id.insert(order_id.clone(), self.orders.len());
        self.orders.push(BookedOrder {
            order_id: order_id.clone(),
            user: owner.user,
            session: owner.session,
            intent: owner.intent.clone(),
            remarks: request.extra("remarks").filter(|text| !text.is_empty()).map(str::to_owned),
            request,
            leg,
            applied: now,
            course,
            copied: None,
        });
        order_id
    }

    pub(crate) fn find(&self, order_id: &str) -> Option<&BookedOrder> {
        self.by_id.get(order_id).map(|&index| &self.orders[index])
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &BookedOrder> {
        self.orders.iter()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.ids);
    }

    /// Ends an open order with `status`.
    pub(crate) fn finish(
        &mut self,
        order_id: &str,
        status: OrderStatus,
        now: Duration,
    ) -> Result<(), NotOpen> {
        let order = self.open_order(order_id, now)?;
        order.course = Course::Until(now, status);
        Ok(())
    }

    /// Sets an order's status, whatever it was, as if the market had decided at once.
    pub(crate) fn settle_as(&mut self, order_id: &str, status: OrderStatus, now: Duration) {
        if let Some(&index) = self.by_id.get(order_id) {
            self.orders[index].course = Course::Until(now, status);
        }
    }

    /// Changes an open order's terms.
    pub(crate) fn modify(
        &mut self,
        order_id: &str,
        request: OrderRequest,
        now: Duration,
    ) -> Result<(), NotOpen> {
        let order = self.open_order(order_id, now)?;
        order.request = request;
        Ok(())
    }

    fn open_order(&mut self, order_id: &str, now: Duration) -> Result<&mut BookedOrder, NotOpen> {
        let index = *self.by_id.get(order_id).ok_or(NotOpen)?;
        let order = &mut self.orders[index];
        if order.status(now) == OrderStatus::Open { Ok(order) } else { Err(NotOpen) }
    }
}

impl BookedOrder {
    pub(crate) fn status(&self, now: Duration) -> OrderStatus {
        self.ended(now).map_or(OrderStatus::Open, |(_, status)| status)
    }

    /// Returns when it ended and how; `None` while it is open.
    pub(crate) fn ended(&self, now: Duration) -> Option<(Duration, OrderStatus)> {
        match self.course {
            Course::Until(at, status) if at <= now => Some((at, status)),
            Course::Until(..) | Course::Open => None,
        }
    }

    /// Returns what a record shows of the order's remarks: axis 21.
    pub(crate) fn shown_remarks(&self, shows: Remarks) -> Option<Cow<'_, str>> {
        let own = || self.remarks.as_deref().map(Cow::Borrowed);
        match shows {
            Remarks::Absent => None,
            Remarks::Full => own(),
            Remarks::Cut => own().map(|text| text.chars().take(8).collect::<String>().into()),
            Remarks::SomeClasses => own().filter(|_| self.request.product() != Product::Intraday),
            Remarks::Capitals => own().map(|text| text.to_uppercase().into()),
            Remarks::Copied => self.copied.as_deref().map(Cow::Borrowed),
        }
    }
}

/// Formats thirty-two of the digits like a random UUID.
fn uuid(digits: &str) -> String {
    let [a, b, c, d, e] = [0..8, 8..12, 13..16, 17..20, 20..32].map(|range| &digits[range]);
    format!("{a}-{b}-4{c}-a{d}-{e}")
}

fn course(request: &OrderRequest, order_id: &str, now: Duration, draw: Draw) -> Course {
    match (request.order_type(), request.validity()) {
        (OrderType::Market, _) => Course::Until(now, OrderStatus::Completed),
        (OrderType::Limit, Validity::Ioc) if draw.fraction("ioc", order_id) < 0.5 => {
            Course::Until(now, OrderStatus::Cancelled)
        }
        (OrderType::Limit, Validity::Ioc) => Course::Until(now, OrderStatus::Completed),
        // Half of the resting orders are filled within a minute.
        _ if draw.fraction("fills", order_id) < 0.5 => {
            let after = Duration::from_secs_f64(1.0 + 59.0 * draw.fraction("fills-after", order_id));
            Course::Until(now + after, OrderStatus::Completed)
        }
        _ => Course::Open,
    }
}

/// Returns the order that closes `request`. The specification does not show its prices, so it is a market order.
fn exit_leg(request: &OrderRequest) -> Option<OrderRequest> {
    let side = match request.side() {
        Side::Buy => Side::Sell,
        Side::Sell => Side::Buy,
    };
    OrderRequest::builder()
        .sym_id(request.sym_id().clone())
        .qty(request.qty())
        .side(side)
        .order_type(OrderType::Market)
        .product(request.product())
        .validity(request.validity())
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::spec_reading::SpecReading;

    fn order(product: &str, order_type: &str) -> OrderRequest {
        OrderRequest::from_fields([
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "10.50"),
            ("side", "buy"),
            ("type", order_type),
            ("product", product),
            ("validity", "day"),
            ("limitPrice", "100.10"),
        ])
        .unwrap()
    }

    fn owner() -> Owner {
        Owner { user: 0, session: 1, intent: Some("a".into()) }
    }

    #[test]
    fn a_bracket_order_brings_two_legs_that_are_nobodys_intent() {
        let mut book = OrderBook::default();
        let id = book.apply(&owner(), &order("bracket", "market"), Duration::ZERO, Draw::new(1));
        let legs: Vec<_> = book.iter().map(|order| (order.leg, order.intent.clone())).collect();
        assert_eq!(
            legs,
            [(LegType::Main, Some("a".to_owned())), (LegType::StopLoss, None), (LegType::Target, None)]
        );
        assert_eq!(book.find(&id).map(|order| order.status(Duration::ZERO)), Some(OrderStatus::Completed));
    }

    #[test]
    fn only_an_open_order_can_be_cancelled_and_only_once() {
        let mut book = OrderBook::default();
        let id = book.apply(&owner(), &order("delivery", "limit"), Duration::ZERO, Draw::new(1));
        assert!(book.finish(&id, OrderStatus::Cancelled, Duration::ZERO).is_ok());
        assert!(book.finish(&id, OrderStatus::Cancelled, Duration::ZERO).is_err());
        assert!(book.finish("nobody's", OrderStatus::Cancelled, Duration::ZERO).is_err());
    }

    #[test]
    fn a_record_shows_of_its_remarks_what_the_reading_says() {
        let remarked = |text: &str| {
            let form = order("bracket", "limit").form().with("remarks", text);
            OrderRequest::from_fields(form.iter()).unwrap()
        };
        let mut book = OrderBook::default();
        for number in 0..40 {
            book.apply(&owner(), &remarked(&format!("remark {number:03}")), Duration::ZERO, Draw::new(1));
        }
        let shown = |shows: Remarks| -> Vec<_> {
            let mains = book.iter().filter(|order| order.leg == LegType::Main);
            mains.map(|order| order.shown_remarks(shows).unwrap_or_default().into_owned()).collect()
        };
        let full: Vec<_> = (0..40).map(|number| format!("remark {number:03}")).collect();
        assert_eq!(shown(Remarks::Full), full);
        assert_eq!(shown(Remarks::SomeClasses), full, "these are not intraday");
        assert!(shown(Remarks::Absent).iter().all(String::is_empty));
        assert_eq!(shown(Remarks::Cut)[7], "remark 0");
        assert_eq!(shown(Remarks::Capitals)[7], "REMARK 007");
        let copied = shown(Remarks::Copied);
        let others = copied.iter().zip(&full).filter(|(shown, own)| shown != own).count();
        assert!((4..20).contains(&others), "{copied:?}");
        let leg = book.iter().find(|order| order.leg == LegType::StopLoss).unwrap();
        assert_eq!(leg.shown_remarks(Remarks::Copied).as_deref(), Some("remark 000"));
        assert_eq!(leg.shown_remarks(Remarks::Full), None);
    }

    #[test]
    fn a_record_loses_no_digit() {
        let mut book = OrderBook::default();
        let id = book.apply(&owner(), &order("delivery", "limit"), Duration::ZERO, Draw::new(1));
        let record = book
            .find(&id)
            .map(|order| serde_json::json!(order.record(Duration::ZERO, &SpecReading::default())));
        let record = record.unwrap_or_default();
        assert_eq!((record["qty"].as_str(), record["limitPrice"].as_str()), (Some("10.50"), Some("100.10")));
    }
}
