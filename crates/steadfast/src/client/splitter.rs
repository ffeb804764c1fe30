use std::{collections::VecDeque, error::Error, fmt};

use serde_json::value::RawValue;

/// The longest record; a longer one is no record of an instrument or an order.
const RECORD_LIMIT: usize = 1024 * 1024;

/// The longest value beside the records.
const VALUE_LIMIT: usize = 64 * 1024;

/// Cuts the records out of an enveloped array (§1) while it arrives, so that at most one of them is held.
///
/// It finds where values end, and leaves it to `serde_json` whether they are valid.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    state: State,
    key: String,
    value: Scan,
    s: Option<String>,
    msg: Option<String>,
    payload: bool,
    records: VecDeque<Box<RawValue>>,
}

/// The expected next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    FirstKey,
    Key,
    InKey,
    Colon,
    Value,
    InValue,
    AfterValue,
    FirstRecord,
    Record,
    InRecord,
    AfterRecord,
    Done,
}

/// How an envelope ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Ok,
    NoData,
    Error(String),
}

impl Splitter {
    /// Takes the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Result<(), BrokenEnvelope> {
        while let Some(&byte) = bytes.first() {
            if matches!(self.state, State::InKey | State::InValue | State::InRecord) {
                let limit = if self.state == State::InRecord { RECORD_LIMIT } else { VALUE_LIMIT };
                let taken = self.value.take(bytes, limit)?;
                bytes = &bytes[taken..];
                if self.value.is_complete {
                    self.complete()?;
                }
                continue;
            }
            if !byte.is_ascii_whitespace() && !self.enter(byte)? {
                continue;
            }
            bytes = &bytes[1..];
        }
        Ok(())
    }

    /// Returns the next complete record.
    pub(super) fn next_record(&mut self) -> Option<Box<RawValue>> {
        self.records.pop_front()
    }

    /// Returns what the envelope says of itself, once its last byte was fed.
    pub(super) fn finish(&self) -> Result<Ending, BrokenEnvelope> {
        if self.state != State::Done {
            return Err(BrokenEnvelope("it ends in the middle"));
        }
        match (self.s.as_deref(), self.payload) {
            (Some("ok"), true) => Ok(Ending::Ok),
            (Some("ok"), false) => Err(BrokenEnvelope("there is no array in d")),
            (Some("no-data"), _) => Ok(Ending::NoData),
            (Some("error"), _) => Ok(Ending::Error(self.msg.clone().unwrap_or_default())),
            _ => Err(BrokenEnvelope("s is missing or unknown")),
        }
    }

    /// Takes one byte between values. Returns false if the byte begins a value; it is then not taken.
    fn enter(&mut self, byte: u8) -> Result<bool, BrokenEnvelope> {
        self.state = match (self.state, byte) {
            (State::Start, b'{') => State::FirstKey,
            (State::FirstKey | State::AfterValue, b'}') => State::Done,
            (State::FirstKey | State::Key, b'"') => return Ok(self.begin(State::InKey)),
            (State::Colon, b':') => State::Value,
            (State::Value, b'[') if self.key == "d" && self.is_ok_so_far() => {
                self.payload = true;
                State::FirstRecord
            }
            (State::Value, _) => return Ok(self.begin(State::InValue)),
            (State::AfterValue, b',') => State::Key,
            (State::FirstRecord | State::AfterRecord, b']') => State::AfterValue,
            (State::AfterRecord, b',') => State::Record,
            (State::FirstRecord | State::Record, _) => return Ok(self.begin(State::InRecord)),
            _ => return Err(BrokenEnvelope("it is not json")),
        };
        Ok(true)
    }

    fn begin(&mut self, state: State) -> bool {
        self.state = state;
        self.value.clear();
        false
    }

    // An array in an error envelope is not the payload (§1). Until `s` is read, the array may be the payload.
    fn is_ok_so_far(&self) -> bool {
        !self.payload && self.s.as_deref().is_none_or(|s| s == "ok")
    }

    fn complete(&mut self) -> Result<(), BrokenEnvelope> {
        const NOT_JSON: BrokenEnvelope = BrokenEnvelope("it is not json");
        let bytes = &self.value.bytes;
        self.state = match self.state {
            State::InRecord => {
                self.records.push_back(serde_json::from_slice(bytes).map_err(|_| NOT_JSON)?);
                State::AfterRecord
            }
            State::InKey => {
                self.key = serde_json::from_slice(bytes).map_err(|_| NOT_JSON)?;
                State::Colon
            }
            _ => {
                let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| NOT_JSON)?;
                let text = value.as_str().map(str::to_owned);
                match self.key.as_str() {
                    "s" if self.s.is_some() => return Err(BrokenEnvelope("s is there twice")),
                    "s" => self.s = Some(text.unwrap_or_default()),
                    "msg" => self.msg = text,
                    _ => {}
                }
                State::AfterValue
            }
        };
        Ok(())
    }
}

/// Finds the end of one JSON value.
#[derive(Debug, Default)]
struct Scan {
    bytes: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    is_complete: bool,
}

impl Scan {
    fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, ..Self::default() };
    }

    /// Takes the bytes of the value from the front of `bytes`, and returns how many.
    fn take(&mut self, bytes: &[u8], limit: usize) -> Result<usize, BrokenEnvelope> {
        let mut taken = 0;
        for &byte in bytes {
            if self.is_end_of_scalar(byte, taken) {
                self.is_complete = true;
                break;
            }
            taken += 1;
            self.step(byte);
            if self.is_complete {
                break;
            }
        }
        if self.bytes.len() + taken > limit {
            return Err(BrokenEnvelope("a value in it is too long"));
        }
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    // A number or a word ends before the next delimiter, which is not part of it.
    fn is_end_of_scalar(&self, byte: u8, taken: usize) -> bool {
        let is_begun = !self.bytes.is_empty() || taken > 0;
        let is_delimiter = byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        is_delimiter && is_begun && self.depth == 0 && !self.in_string
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => {
                self.in_string = !self.in_string;
                self.is_complete = !self.in_string && self.depth == 0;
            }
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_complete = self.depth == 0;
            }
            _ => {}
        }
    }
}

/// A streamed answer that is not an envelope around an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BrokenEnvelope(&'static str);

impl fmt::Display for BrokenEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answer is not an enveloped list: {}", self.0)
    }
}

impl Error for BrokenEnvelope {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn split(pieces: &[&[u8]]) -> Result<(Vec<String>, Ending), BrokenEnvelope> {
        let mut splitter = Splitter::default();
        let mut records = Vec::new();
        for piece in pieces {
            splitter.feed(piece)?;
            records.extend(std::iter::from_fn(|| splitter.next_record()).map(|raw| raw.get().to_owned()));
        }
        splitter.finish().map(|ending| (records, ending))
    }

    #[test]
    fn records_keep_every_digit_and_every_escape() {
        let body = br#" {"s":"ok","d":[ {"a":"]},\"{"} ,1.10, "x" ,[[]],null ] , "more":{"d":[1]}} "#;
        let (records, ending) = split(&[body]).unwrap();
        assert_eq!(records, [r#"{"a":"]},\"{"}"#, "1.10", "\"x\"", "[[]]", "null"]);
        assert_eq!(ending, Ending::Ok);
    }

    #[test]
    fn an_envelope_tells_how_it_ended_wherever_s_stands() {
        assert_eq!(split(&[br#"{"s":"no-data","msg":"no-data"}"#]).unwrap().1, Ending::NoData);
        assert_eq!(split(&[br#"{"d":[1],"s":"ok"}"#]).unwrap().0, ["1"]);
        assert_eq!(split(&[br#"{"d":[1],"s":"error","msg":"m"}"#]).unwrap().1, Ending::Error("m".into()));
        assert_eq!(split(&[br#"{"s":"error","d":[1],"msg":"m"}"#]).unwrap().0.len(), 0);
    }

    #[test]
    fn whatever_is_not_an_enveloped_array_is_an_error() {
        let long = format!(r#"{{"s":"ok","d":["{}"]}}"#, "x".repeat(RECORD_LIMIT));
        for body in [
            "",
            "[]",
            "{",
            r#"{"s":"ok"}"#,
            r#"{"s":"ok","d":{}}"#,
            r#"{"s":"ok","d":[1,]}"#,
            r#"{"s":"ok","d":[1 2]}"#,
            r#"{"s":"ok","d":[}]}"#,
            r#"{"s":"ok","d":[nul]}"#,
            r#"{"s":"ok","d":[1]"#,
            r#"{"s":"ok","d":[1]}}"#,
            r#"{"s":"ok","s":"ok","d":[1]}"#,
            r#"{"d":[1]}"#,
            r#"{"s":1,"d":[1]}"#,
            r#"{"s":"ok",,"d":[1]}"#,
            "<html>",
            &long,
        ] {
            assert!(split(&[body.as_bytes()]).is_err(), "{}", &body[..body.len().min(40)]);
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            r#"[\{\}\[\]":,\\a-z \n]{0,8}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d\"]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Checks that any split of an answer yields the records that `serde_json` finds in the whole.
        #[test]
        fn pieces_do_not_matter(records in prop::collection::vec(json(), 0..6), cuts in prop::collection::vec(1_usize..40, 1..20), pretty: bool) {
            let envelope = serde_json::json!({"s": "ok", "msg": [1], "d": records});
            let body = if pretty { serde_json::to_vec_pretty(&envelope) } else { serde_json::to_vec(&envelope) }.unwrap();
            let mut pieces = Vec::new();
            let (mut rest, mut cuts) = (&body[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let (found, ending) = split(&pieces).unwrap();
            let found: Vec<Value> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            prop_assert_eq!(found, records);
            prop_assert_eq!(ending, Ending::Ok);
            // A body cut anywhere is never taken for complete.
            for end in 0..body.len() {
                prop_assert!(split(&[&body[..end]]).is_err());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop::sample::select(br#"{}[]":,\s dok1"#.to_vec()), 0..60)) {
            let _ = split(&[&bytes]);
        }
    }
}
