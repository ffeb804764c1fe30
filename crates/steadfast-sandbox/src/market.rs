use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use steadfast_spec::{Decimal, Endpoint, Form, OrderRequest, OrderStatus, Side, SymId};

use crate::{
    arrival::{Content, Page, refusal},
    body::BrokenOff,
    draw::Draw,
    engine::{Caller, Engine, Passage},
};

/// How many instruments the scrip master has, unless a large one is asked for.
pub(crate) const SCRIPS: u64 = 3_000;

const SYMBOLS: [&str; 20] = [
    "INFY",
    "TCS",
    "RELIANCE",
    "HDFCBANK",
    "ICICIBANK",
    "SBIN",
    "ITC",
    "LT",
    "M&M",
    "BAJAJ-AUTO",
    "WIPRO",
    "MARUTI",
    "TITAN",
    "ONGC",
    "NTPC",
    "COALINDIA",
    "TATASTEEL",
    "CIPLA",
    "NIFTY",
    "BANKNIFTY",
];
const EXPIRIES: [&str; 3] = ["26Nov2026", "31Dec2026", "28Jan2027"];
/// The groups of `symbol-store/{scripGroup}`; their values are not shown in the specification.
const GROUPS: [&str; 4] = ["NSE_EQ", "BSE_EQ", "NFO_FUT", "NFO_OPT"];

/// Returns the instrument with this number: all three forms of §2, without repeats.
pub(crate) fn sym_id(number: u64) -> String {
    let symbol = SYMBOLS[(number % 20) as usize];
    let round = number / 80;
    let tail = if round == 0 { String::new() } else { round.to_string() };
    match (number / 20) % 4 {
        0 => format!("EQT_{symbol}{tail}_EQ_NSE"),
        1 => format!("EQT_{symbol}{tail}_EQ_BSE"),
        2 => format!("FUT_{symbol}{tail}_FUT_NFO_{}", EXPIRIES[(round % 3) as usize]),
        _ => {
            let kind = if round.is_multiple_of(2) { "CE" } else { "PE" };
            format!("OPT_{symbol}_{kind}_NFO_{}_{}", EXPIRIES[(round % 3) as usize], 500 + 50 * round)
        }
    }
}

fn group(number: u64) -> &'static str {
    GROUPS[((number / 20) % 4) as usize]
}

/// One record of the scrip master. Written directly and not through [`Value`], because there may be millions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Scrip {
    sym_id: String,
    group: &'static str,
    lot_size: u32,
    tick_size: &'static str,
}

fn scrip(number: u64) -> Scrip {
    let group = group(number);
    let lot_size = if group.starts_with("NFO") { 50 } else { 1 };
    Scrip { sym_id: sym_id(number), group, lot_size, tick_size: "0.05" }
}

/// Returns an instrument's price, a function of the seed and the name.
pub(crate) fn price(draw: Draw, sym_id: &str) -> Decimal {
    Decimal::new(10_000 + 5 * i64::try_from(draw.below("price", sym_id, 80_000)).unwrap_or_default(), 2)
}

impl Engine {
    /// Answers reads of market and account data (§4.1, §4.5); forms that are not shown are the sandbox's own.
    pub(crate) fn read_data(&self, endpoint: Endpoint, passage: &Passage<'_>, caller: Caller) -> Page {
        match endpoint {
            Endpoint::SymbolStore => symbols(&passage.arrival.path),
            Endpoint::ScripMaster => self.scrip_master(),
            Endpoint::Quotes => self.quote(&passage.query),
            Endpoint::Positions => self.positions(passage, caller),
            Endpoint::Funds => Page::ok(json!({"available": "1000000.00", "used": "0.00"})),
            // No trade is settled within a sandbox's life.
            Endpoint::Holdings => Page::no_data(),
            _ => refusal::not_found(),
        }
    }

    fn scrip_master(&self) -> Page {
        let count = self.settings.large_scrip_master.unwrap_or(SCRIPS);
        Page {
            content: Content::Scrips { count, broken_after: None },
            ..Page::json(StatusCode::OK, &Value::Null)
        }
    }

    fn quote(&self, query: &Form) -> Page {
        let Some(sym_id) = query.get("symId").and_then(|text| text.parse::<SymId>().ok()) else {
            return refusal::input_validation();
        };
        if sym_id.shape().is_none() {
            return Page::no_data();
        }
        Page::ok(json!({"symId": sym_id.as_str(), "ltp": price(self.draw, sym_id.as_str()).to_string()}))
    }

    fn positions(&self, passage: &Passage<'_>, caller: Caller) -> Page {
        let mut net: std::collections::BTreeMap<&str, Decimal> = std::collections::BTreeMap::new();
        let completed = |status| status == OrderStatus::Completed;
        for order in self.book.iter().filter(|o| o.user == caller.user && completed(o.status(passage.now))) {
            let qty = match order.request.side() {
                Side::Buy => order.request.qty(),
                Side::Sell => -order.request.qty(),
            };
            let position = net.entry(order.request.sym_id().as_str()).or_default();
            // Quantities near the largest decimal do not overflow; the position stays unchanged.
            *position = position.checked_add(qty).unwrap_or(*position);
        }
        let records: Vec<Value> =
            net.into_iter().map(|(sym_id, qty)| json!({"symId": sym_id, "qty": qty.to_string()})).collect();
        if records.is_empty() { Page::no_data() } else { Page::ok(Value::Array(records)) }
    }

    /// Path, payload and response are not shown; here the order's own fields, and a fifth of its value.
    pub(crate) fn order_margin(&self, form: &Form) -> Page {
        match OrderRequest::from_fields(form.iter()) {
            Ok(order) => Page::ok(json!({"margin": self.margin(&order).to_string()})),
            Err(_) => refusal::input_validation(),
        }
    }

    /// Payload and response are not shown; here `orders` holds a JSON array of objects with the fields of §4.4.
    pub(crate) fn basket_margin(&self, form: &Form) -> Page {
        type Fields = std::collections::BTreeMap<String, String>;
        let Ok(basket) = serde_json::from_str::<Vec<Fields>>(form.get("orders").unwrap_or("[]")) else {
            return refusal::input_validation();
        };
        let mut total = Decimal::ZERO;
        for fields in &basket {
            let Ok(order) = OrderRequest::from_fields(fields.iter().map(|(k, v)| (k.as_str(), v.as_str())))
            else {
                return refusal::input_validation();
            };
            total = total.saturating_add(self.margin(&order));
        }
        Page::ok(json!({"margin": total.to_string(), "orders": basket.len()}))
    }

    fn margin(&self, order: &OrderRequest) -> Decimal {
        let price = order.limit_price().or(order.trig_price());
        let price = price.unwrap_or_else(|| price_of(self.draw, order));
        order.qty().saturating_mul(price).saturating_mul(Decimal::new(2, 1)).round_dp(2)
    }
}

fn price_of(draw: Draw, order: &OrderRequest) -> Decimal {
    price(draw, order.sym_id().as_str())
}

fn symbols(path: &str) -> Page {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    let records: Vec<Scrip> = (0..SCRIPS).filter(|&number| group(number) == name).map(scrip).collect();
    if records.is_empty() { Page::no_data() } else { Page::ok(json!(records)) }
}

/// The scrip master in pieces of some hundred records, so that it is never held in memory as a whole.
pub(crate) struct ScripPieces {
    next: u64,
    /// Where the pieces end, or the connection breaks.
    end: u64,
    breaks: bool,
    ended: bool,
}

impl ScripPieces {
    pub(crate) fn new(count: u64, broken_after: Option<u64>) -> Self {
        Self { next: 0, end: broken_after.unwrap_or(count), breaks: broken_after.is_some(), ended: false }
    }
}

impl Iterator for ScripPieces {
    type Item = Result<Bytes, BrokenOff>;

    fn next(&mut self) -> Option<Self::Item> {
        const PIECE: u64 = 500;
        if self.ended {
            return None;
        }
        if self.breaks && self.next == self.end {
            return Some(Err(BrokenOff));
        }
        let mut text = String::new();
        if self.next == 0 {
            text.push_str(r#"{"s":"ok","d":["#);
        }
        let end = self.end.min(self.next + PIECE);
        for number in self.next..end {
            if number > 0 {
                text.push(',');
            }
            // Proof: a record of texts and a number is always JSON.
            text.push_str(&serde_json::to_string(&scrip(number)).unwrap_or_default());
        }
        self.next = end;
        if end == self.end && !self.breaks {
            self.ended = true;
            text.push_str("]}");
        }
        Some(Ok(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use steadfast_spec::AssetClass;

    use super::*;

    #[test]
    fn instruments_have_all_three_shapes_and_no_repeats() {
        let ids: BTreeSet<String> = (0..SCRIPS).map(sym_id).collect();
        assert_eq!(ids.len() as u64, SCRIPS);
        for class in [AssetClass::Equity, AssetClass::Future, AssetClass::Option] {
            assert!(ids.iter().any(|id| id.parse::<SymId>().is_ok_and(|id| id.asset_class() == Some(class))));
        }
        assert!(ids.iter().all(|id| id.parse::<SymId>().is_ok_and(|id| id.shape().is_some())));
    }

    #[test]
    fn the_pieces_of_the_scrip_master_join_to_one_json_array() {
        for count in [0, 1, 500, 501, 1_234] {
            let whole: Vec<u8> =
                ScripPieces::new(count, None).flatten().flat_map(|piece| piece.to_vec()).collect();
            let answer: Value = serde_json::from_slice(&whole).unwrap();
            assert_eq!(answer["d"].as_array().map(|d| d.len() as u64), Some(count));
        }
    }
}
