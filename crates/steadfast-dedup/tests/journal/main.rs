//! Tests the journal on disks that lose, tear and refuse, and in processes that are killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod disk;
mod displaced;
mod faults;
mod files;
mod fillable;
mod full;
mod images;
mod size;

use std::sync::Arc;

use steadfast_call::{Outcome, Resend, ext};
use steadfast_dedup::{
    Answer, AttemptNo, IntentNo, Session, TradingDay,
    journal::{Entry, Record},
};
use steadfast_spec::OrderRequest;

/// True for long runs.
pub(crate) fn deep() -> bool {
    std::env::var("STEADFAST_DEEP").is_ok_and(|value| value == "1")
}

pub(crate) fn entry(record: Record) -> Entry {
    Entry { account: ext::Account::default(), record }
}

pub(crate) fn begun(intent: u64) -> Entry {
    let qty = (intent + 1).to_string();
    let fields = [
        ("symId", "S"),
        ("qty", qty.as_str()),
        ("side", "buy"),
        ("type", "market"),
        ("product", "intraday"),
        ("validity", "day"),
    ];
    entry(Record::Begun {
        attempt: AttemptNo { intent: IntentNo(intent), index: 0 },
        session: Session::hashed(7),
        day: TradingDay(1),
        name: None,
        order: Arc::new(OrderRequest::from_fields(fields).unwrap()),
        tag: None,
    })
}

pub(crate) fn closed(intent: u64, outcome: Outcome) -> Entry {
    let attempt = AttemptNo { intent: IntentNo(intent), index: 0 };
    entry(Record::Closed { attempt, outcome, answer: Answer::Status(200) })
}

pub(crate) fn acknowledged(intent: u64) -> Entry {
    closed(intent, Outcome::Accepted { order_id: Some(format!("o{intent}").into()) })
}

pub(crate) fn lost(intent: u64) -> Entry {
    closed(intent, Outcome::Unknown { resend: Resend::AfterAbsence })
}

pub(crate) fn seen(id: &str) -> Entry {
    entry(Record::Seen {
        session: Session::hashed(7),
        day: TradingDay(1),
        order_ids: vec![id.into()],
        complete: true,
    })
}

pub(crate) fn intent_of(entry: &Entry) -> Option<u64> {
    match &entry.record {
        Record::Begun { attempt, .. } => Some(attempt.intent.0),
        _ => None,
    }
}
