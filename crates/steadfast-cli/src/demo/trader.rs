use std::collections::BTreeSet;

use steadfast_sandbox::Fault;
use steadfast_spec::{Decimal, OrderRequest, OrderType, Product, Side, SymId, Validity};

use super::{dice::Dice, misfortune::Misfortune};

/// Generates the orders of a trading day.
///
/// No two orders agree in instrument, side and quantity, and no two that meet a fault agree in instrument and side.
/// So each order in the ground truth belongs to exactly one intent.
pub(crate) struct Trader {
    instruments: usize,
    looks: BTreeSet<(usize, Side, u64)>,
    in_doubt: BTreeSet<(usize, Side)>,
}

const SYMBOLS: [(&str, u32); 16] = [
    ("INFY", 1_512),
    ("TCS", 3_420),
    ("RELIANCE", 1_388),
    ("HDFCBANK", 1_721),
    ("ICICIBANK", 1_254),
    ("SBIN", 812),
    ("ITC", 436),
    ("LT", 3_610),
    ("M&M", 2_944),
    ("BAJAJ-AUTO", 9_120),
    ("WIPRO", 268),
    ("MARUTI", 12_340),
    ("TITAN", 3_388),
    ("ONGC", 251),
    ("NTPC", 339),
    ("TATASTEEL", 158),
];

impl Trader {
    /// Creates a trader for this number of orders.
    pub(crate) fn new(orders: usize) -> Self {
        Self { instruments: (orders / 5).max(48), looks: BTreeSet::new(), in_doubt: BTreeSet::new() }
    }

    /// Returns the next order; `misfortune` is the fault that will strike it.
    pub(crate) fn order(&mut self, dice: &mut Dice, misfortune: Option<&Misfortune>) -> OrderRequest {
        loop {
            let instrument = dice.below(self.instruments);
            let side = if dice.percent(55) { Side::Buy } else { Side::Sell };
            let lots = dice.between(1, 40);
            if misfortune.is_some() && self.in_doubt.contains(&(instrument, side)) {
                continue;
            }
            if !self.looks.insert((instrument, side, lots)) {
                continue;
            }
            if misfortune.is_some() {
                self.in_doubt.insert((instrument, side));
            }
            let may_rest = misfortune.is_some_and(|m| m.fault == Fault::Placement504NotApplied);
            // The order satisfies §4.4; if it did not, another one would be generated.
            if let Some(order) = order(dice, instrument, side, lots, may_rest) {
                return order;
            }
        }
    }
}

fn order(dice: &mut Dice, instrument: usize, side: Side, lots: u64, limit: bool) -> Option<OrderRequest> {
    let (sym_id, spot, lot) = listed(instrument);
    let order_type = if limit { OrderType::Limit } else { order_type(dice) };
    let is_equity = sym_id.starts_with("EQT");
    let product = match dice.below(100) {
        0..4 => Product::Bracket,
        4..7 => Product::Cover,
        7..50 => Product::Intraday,
        _ if is_equity => Product::Delivery,
        _ => Product::Normal,
    };
    let validity = match dice.below(100) {
        0..8 if !limit && order_type == OrderType::Limit => Validity::Ioc,
        8..14 if sym_id.ends_with("BSE") => Validity::Eos,
        14..22 if order_type != OrderType::Market => Validity::Gtc,
        _ => Validity::Day,
    };
    let mut builder = OrderRequest::builder()
        .sym_id(sym_id.parse::<SymId>().ok()?)
        .qty(lots * lot)
        .side(side)
        .order_type(order_type)
        .product(product)
        .validity(validity);
    if order_type.needs_limit_price() {
        builder = builder.limit_price(near(dice, spot));
    }
    if order_type.needs_trig_price() {
        builder = builder.trig_price(near(dice, spot));
    }
    builder.build().ok()
}

fn order_type(dice: &mut Dice) -> OrderType {
    match dice.below(100) {
        0..62 => OrderType::Limit,
        62..82 => OrderType::Market,
        82..93 => OrderType::StopLimit,
        _ => OrderType::StopMarket,
    }
}

/// Returns an instrument, the price of its underlying, and its lot.
fn listed(instrument: usize) -> (String, u32, u64) {
    let (symbol, spot) = SYMBOLS[instrument % SYMBOLS.len()];
    let kind = instrument / SYMBOLS.len();
    // Beyond the first three kinds there are further strikes.
    match kind {
        0 => (format!("EQT_{symbol}_EQ_NSE"), spot, 1),
        1 => (format!("EQT_{symbol}_EQ_BSE"), spot, 1),
        2 => (format!("FUT_{symbol}_FUT_NFO_31Dec2026"), spot, 50),
        _ => {
            let right = if kind.is_multiple_of(2) { "CE" } else { "PE" };
            let strike = spot / 10 * 10 + 10 * (kind as u32 - 3);
            (format!("OPT_{symbol}_{right}_NFO_31Dec2026_{strike}"), spot / 20 + 2, 50)
        }
    }
}

/// Returns a price within two per cent of `spot`, on the tick of 0.05.
fn near(dice: &mut Dice, spot: u32) -> Decimal {
    let ticks = i64::from(spot) * 20;
    let within = (ticks / 50).max(1);
    let away = dice.below((2 * within + 1) as usize) as i64 - within;
    Decimal::new((ticks + away) * 5, 2)
}
