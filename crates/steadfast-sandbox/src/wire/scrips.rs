//! The instruments of the scrip master.

use bytes::Bytes;
use serde::Serialize;

use super::broken_off::BrokenOff;

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

pub(crate) fn group(number: u64) -> &'static str {
    GROUPS[((number / 20) % 4) as usize]
}

/// One record of the scrip master. Written directly and not through `Value`, because there may be millions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scrip {
    sym_id: String,
    group: &'static str,
    lot_size: u32,
    tick_size: &'static str,
}

pub(crate) fn scrip(number: u64) -> Scrip {
    let group = group(number);
    let lot_size = if group.starts_with("NFO") { 50 } else { 1 };
    Scrip { sym_id: sym_id(number), group, lot_size, tick_size: "0.05" }
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

    use serde_json::Value;
    use steadfast_spec::{AssetClass, SymId};

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
