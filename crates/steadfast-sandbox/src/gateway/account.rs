//! The state of an account, worked out from the order book: fills, positions, holdings, funds.
//!
//! The specification does not show these records. Their names are those of public documentation; only the quantity of a
//! position has the name of §2, unless the sandbox takes a published client's shape.

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::{Value, json};
use steadfast_spec::{Decimal, Form, OrderStatus, Product, Side, SymId, parse_decimal};

use crate::{
    gateway::{
        book::BookedOrder,
        conversion::Conversion,
        directory::UserIndex,
        engine::Engine,
        market::price,
        order_row::number,
        passage::Caller,
        traded::{Lot, Traded},
    },
    wire::page::{Page, refusal},
};

/// The service's time zone, ahead of UTC: that of its exchanges.
const ZONE: Duration = Duration::from_secs(19_800);
const DAY: u64 = 86_400;

/// The cash of each account at the start.
const CASH: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);

/// The execution of an order, always as a whole and at one price.
pub(super) struct Fill<'a> {
    id: usize,
    pub(super) order: &'a BookedOrder,
    at: Duration,
    pub(super) price: Decimal,
}

type Positions<'a> = BTreeMap<(&'a str, &'static str), Traded>;

impl Engine {
    /// An order fills at its own price; one without a price at that of its instrument.
    pub(super) fn fills(&self, user: UserIndex, now: Duration) -> impl Iterator<Item = Fill<'_>> {
        self.book.iter().enumerate().filter(move |(_, order)| order.user == user).filter_map(
            move |(number, order)| {
                let (at, _) = order.ended(now).filter(|(_, status)| *status == OrderStatus::Completed)?;
                let own = order.request.limit_price().or(order.request.trig_price());
                let price = own.unwrap_or_else(|| price(self.draw, order.request.sym_id().as_str()));
                Some(Fill { id: number + 1, order, at, price })
            },
        )
    }

    fn lots(&self, user: UserIndex, now: Duration) -> Vec<Lot<'_>> {
        let fills = self.fills(user, now).map(|fill| {
            let request = &fill.order.request;
            Lot {
                sym_id: request.sym_id(),
                product: request.product(),
                side: request.side(),
                qty: request.qty(),
                price: fill.price,
                day: self.day(fill.at),
            }
        });
        let mine = self.conversions.iter().filter(|it| it.user == user);
        let conversions = mine.flat_map(|it| {
            [(it.from, -it.qty), (it.to, it.qty)].map(|(product, qty)| Lot {
                sym_id: &it.sym_id,
                product,
                side: it.side,
                qty,
                price: it.price,
                day: self.day(it.at),
            })
        });
        fills.chain(conversions).collect()
    }

    /// Returns the day of a moment, in the exchanges' time zone.
    fn day(&self, at: Duration) -> u64 {
        (self.wall(at) + ZONE).as_secs() / DAY
    }

    /// Positions are what was traded today, and what is carried on of the product `normal`. Of the others, `delivery` is a
    /// holding from the next day on, and the rest ends with its day.
    fn position_of_each<'a>(&self, lots: &'a [Lot<'_>], now: Duration) -> Positions<'a> {
        let mut positions = Positions::new();
        let today = self.day(now);
        for lot in lots.iter().filter(|lot| lot.day == today || lot.product == Product::Normal) {
            positions.entry((lot.sym_id.as_str(), lot.product.as_str())).or_default().add(lot);
        }
        positions
    }

    pub(crate) fn positions(&self, caller: Caller, now: Duration) -> Page {
        let lots = self.lots(caller.user, now);
        let net_name = if self.settings.published { "netQty" } else { "qty" };
        let quantity = |qty| self.settings.interpretation.quantity(number(qty));
        let row = |((sym_id, product), traded): ((&str, &str), Traded)| {
            json!({
                "symId": sym_id,
                "product": product,
                net_name: quantity(traded.net()),
                "netAvgPrice": number(traded.net_price()),
                "buyQty": quantity(traded.buy_qty),
                "buyAvgPrice": number(traded.buy_price()),
                "sellQty": quantity(traded.sell_qty),
                "sellAvgPrice": number(traded.sell_price()),
                "realizedPnl": number(traded.realized()),
            })
        };
        list(self.position_of_each(&lots, now).into_iter().map(row).collect())
    }

    /// Holdings are what was bought for delivery before today and not sold before today.
    pub(crate) fn holdings(&self, caller: Caller, now: Duration) -> Page {
        let lots = self.lots(caller.user, now);
        let today = self.day(now);
        let mut owned: BTreeMap<&str, (Traded, Decimal)> = BTreeMap::new();
        for lot in lots.iter().filter(|lot| lot.product == Product::Delivery) {
            let (before, sold) = owned.entry(lot.sym_id.as_str()).or_default();
            match lot.side {
                _ if lot.day < today => before.add(lot),
                Side::Sell => *sold = sold.saturating_add(lot.qty),
                Side::Buy => {}
            }
        }
        let quantity = |qty| self.settings.interpretation.quantity(number(qty));
        let row = |(sym_id, (before, sold)): (&str, (Traded, Decimal))| {
            let saleable = before.net().saturating_sub(sold).max(Decimal::ZERO);
            json!({
                "symId": sym_id,
                "qty": quantity(before.net()),
                "avgPrice": number(before.buy_price()),
                "saleableQty": quantity(saleable),
            })
        };
        let rows: Vec<Value> =
            owned.into_iter().filter(|(_, (before, _))| before.net() > Decimal::ZERO).map(row).collect();
        if self.settings.published && !rows.is_empty() {
            return Page::ok(json!({"holdings": rows, "hasNonPoaRecord": false}));
        }
        list(rows)
    }

    /// Deliveries are paid in full; open orders and other positions take a fifth of their value as margin.
    pub(crate) fn funds(&self, caller: Caller, now: Duration) -> Page {
        let lots = self.lots(caller.user, now);
        let mut deliveries = Traded::default();
        lots.iter().filter(|lot| lot.product == Product::Delivery).for_each(|lot| deliveries.add(lot));
        let cash = CASH.saturating_sub(deliveries.buy_value).saturating_add(deliveries.sell_value);
        let (mut used, mut realized) = (Decimal::ZERO, Decimal::ZERO);
        for ((_, product), traded) in self.position_of_each(&lots, now) {
            realized = realized.saturating_add(traded.realized());
            if product != Product::Delivery.as_str() {
                used = used.saturating_add(fifth(traded.net_value().abs()));
            }
        }
        let open = self.book.iter().filter(|order| order.user == caller.user && order.ended(now).is_none());
        used = open.fold(used, |used, order| used.saturating_add(self.margin(&order.request)));
        Page::ok(json!({
            "totalCredits": number(cash.normalize()),
            "availCash": number(cash.normalize()),
            "marginUsed": number(used.normalize()),
            "availMargin": number(cash.saturating_sub(used).normalize()),
            "realizedPnl": number(realized.normalize()),
            "payIn": 0,
            "payOut": 0,
        }))
    }

    /// The trades of today.
    pub(crate) fn trades(&self, caller: Caller, now: Duration) -> Page {
        let today = self.fills(caller.user, now).filter(|fill| self.day(fill.at) == self.day(now));
        let row = |fill: Fill<'_>| {
            let request = &fill.order.request;
            let mut row = json!({
                "orderId": fill.order.order_id,
                "symId": request.sym_id().as_str(),
                "side": request.side().as_str(),
                "type": request.order_type().as_str(),
                "product": request.product().as_str(),
                "validity": request.validity().as_str(),
                "legType": fill.order.leg.as_str(),
                "fillValue": number(request.qty().saturating_mul(fill.price).normalize()),
            });
            self.describe(&fill, &mut row);
            if let Some(remarks) = fill.order.shown_remarks(self.settings.interpretation.remarks) {
                row["remarks"] = remarks.as_ref().into();
            }
            row
        };
        list(today.map(row).collect())
    }

    /// Adds what a trade and a step of a history say of a fill.
    pub(super) fn describe(&self, fill: &Fill<'_>, row: &mut Value) {
        let qty = number(fill.order.request.qty());
        row["fillId"] = fill.id.to_string().into();
        row["fillQty"] = self.settings.interpretation.quantity(qty);
        row["fillPrice"] = number(fill.price);
        row["time"] = self.local_time(fill.at).into();
    }

    /// Moves a part of a position to another product, at its average price.
    pub(crate) fn convert(&mut self, caller: Caller, now: Duration, form: &Form) -> Page {
        let Some((asked, net)) = self.asked_conversion(caller, now, form) else {
            return refusal::input_validation();
        };
        let held = if asked.side == Side::Buy { net } else { -net };
        if asked.qty <= Decimal::ZERO || asked.qty > held || asked.from == asked.to {
            return refusal::input_validation();
        }
        self.conversions.push(asked);
        Page::ok(json!({"msg": "Position converted"}))
    }

    /// Returns the conversion that a form asks for, and what is held of the position.
    fn asked_conversion(&self, caller: Caller, now: Duration, form: &Form) -> Option<(Conversion, Decimal)> {
        let (sym_id, from): (SymId, Product) =
            (form.get("symId")?.parse().ok()?, form.get("fromProduct")?.parse().ok()?);
        let lots = self.lots(caller.user, now);
        let positions = self.position_of_each(&lots, now);
        let traded = *positions.get(&(sym_id.as_str(), from.as_str()))?;
        let asked = Conversion {
            user: caller.user,
            at: now,
            from,
            to: form.get("toProduct")?.parse().ok()?,
            side: form.get("side")?.parse().ok()?,
            qty: parse_decimal(form.get("qty")?).ok()?,
            price: traded.net_price(),
            sym_id,
        };
        Some((asked, traded.net()))
    }

    /// Writes a moment as public documentation has it: `dd-MM-yyyy HH:mm:ss`, in the exchanges' time zone.
    pub(super) fn local_time(&self, at: Duration) -> String {
        let [day, month, year, time] = date(self.wall(at) + ZONE);
        format!("{day}-{month}-{year} {time}")
    }
}

/// Returns day, month, year and time of day.
fn date(since_epoch: Duration) -> [String; 4] {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let written = UNIX_EPOCH.checked_add(since_epoch).map(httpdate::fmt_http_date).unwrap_or_default();
    let mut parts = written.split(' ').skip(1).map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let (day, month, year, time) = (next(), next(), next(), next());
    let month = MONTHS.iter().position(|name| *name == month).map_or(0, |at| at + 1);
    [day, format!("{month:02}"), year, time]
}

fn fifth(value: Decimal) -> Decimal {
    value.saturating_mul(Decimal::new(2, 1)).round_dp(2)
}

/// Returns the page of a list (§1).
pub(super) fn list(rows: Vec<Value>) -> Page {
    if rows.is_empty() { Page::no_data() } else { Page::ok(Value::Array(rows)) }
}
