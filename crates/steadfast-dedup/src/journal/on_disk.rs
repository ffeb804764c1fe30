//! The form of an entry on disk.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steadfast_call::{Outcome, Resend, ext};
use steadfast_spec::{Form, OrderRequest};

use super::{
    entry::{Entry, Record},
    fold::Fold,
    frame::MAX_PAYLOAD,
};
use crate::{
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::event::Answer,
};

impl Entry {
    /// Returns those of a journal's entries that still matter, in their order, as [`Journal::recover`](super::Journal::recover)
    /// does.
    #[must_use]
    pub fn still_matter(entries: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut fold = Fold::default();
        entries.into_iter().for_each(|entry| fold.add(entry));
        fold.entries().cloned().collect()
    }

    /// Returns its form in a journal.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Only strings and numbers: JSON can hold all of it.
        serde_json::to_vec(&(self.account.as_str(), OnDisk::of(&self.record))).unwrap_or_default()
    }

    /// Fails if no journal can hold it, by its length in bytes.
    pub(super) fn check_length(&self) -> Result<(), usize> {
        let length = self.encode().len();
        if length > MAX_PAYLOAD { Err(length) } else { Ok(()) }
    }

    /// Decodes an entry; `None` if a later version wrote it.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (account, written): (String, OnDisk) = serde_json::from_slice(payload).ok()?;
        Some(Self { account: ext::Account::new(account), record: written.record()? })
    }
}

/// A record on disk: JSON, which a person can read without tools.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum OnDisk {
    Begun {
        intent: u64,
        attempt: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
        day: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        order: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    Closed {
        intent: u64,
        attempt: usize,
        outcome: OutcomeOnDisk,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        denied: bool,
    },
    Seen {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u64>,
        day: i64,
        ids: Vec<String>,
        complete: bool,
    },
    Found {
        intent: u64,
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
    },
    Confirmed {
        intent: u64,
    },
    Heard {
        intent: u64,
    },
    Ruled {
        intent: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    Unresolved {
        intent: u64,
        reason: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        candidates: Vec<String>,
    },
    Renamed {
        from: i64,
        day: i64,
        intents: Vec<u64>,
    },
    NamedUntil {
        intent: u64,
        day: i64,
    },
    Changed {},
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OutcomeOnDisk {
    NotSent,
    NotExecuted,
    Rejected,
    Accepted,
    UnknownUntilAbsent,
    Unknown,
}

impl OnDisk {
    fn of(record: &Record) -> Self {
        match record.clone() {
            Record::Begun { attempt, session, day, name, order, tag } => Self::Begun {
                intent: attempt.intent.0,
                attempt: attempt.index,
                session: session.get(),
                day: day.0,
                name: name.map(|name| name.as_str().to_owned()),
                order: order.form().encode(),
                tag: tag.map(|tag| tag.to_string()),
            },
            Record::Closed { attempt, outcome, answer } => {
                let (outcome, id) = match outcome {
                    Outcome::NotSent => (OutcomeOnDisk::NotSent, None),
                    Outcome::NotExecuted => (OutcomeOnDisk::NotExecuted, None),
                    Outcome::Rejected => (OutcomeOnDisk::Rejected, None),
                    Outcome::Accepted { order_id } => {
                        (OutcomeOnDisk::Accepted, order_id.map(|id| id.to_string()))
                    }
                    Outcome::Unknown { resend: Resend::AfterAbsence } => {
                        (OutcomeOnDisk::UnknownUntilAbsent, None)
                    }
                    // An outcome that this version does not know proves nothing.
                    _ => (OutcomeOnDisk::Unknown, None),
                };
                let status = match answer {
                    Answer::Status(status) => Some(status),
                    Answer::Denied => Some(200),
                    Answer::Cut | Answer::Ended | Answer::None => None,
                };
                Self::Closed {
                    intent: attempt.intent.0,
                    attempt: attempt.index,
                    outcome,
                    id,
                    status,
                    cut: answer == Answer::Cut,
                    denied: answer == Answer::Denied,
                }
            }
            Record::Seen { session, day, order_ids, complete } => {
                Self::Seen { session: session.get(), day: day.0, ids: order_ids, complete }
            }
            Record::Found { intent, order_id, status } => {
                Self::Found { intent: intent.0, id: order_id, status }
            }
            Record::Confirmed { intent } => Self::Confirmed { intent: intent.0 },
            Record::Heard { intent } => Self::Heard { intent: intent.0 },
            Record::Ruled { intent, order_id } => Self::Ruled { intent: intent.0, id: order_id },
            Record::Unresolved { intent, reason, candidates } => {
                Self::Unresolved { intent: intent.0, reason, candidates }
            }
            Record::Renamed { from, day, intents } => {
                let intents = intents.into_iter().map(|intent| intent.0).collect();
                Self::Renamed { from: from.0, day: day.0, intents }
            }
            Record::NamedUntil { intent, day } => Self::NamedUntil { intent: intent.0, day: day.0 },
            Record::Changed => Self::Changed {},
        }
    }

    /// Returns the record; `None` if it breaks a rule of this version.
    fn record(self) -> Option<Record> {
        let session = |hash: Option<u64>| hash.map_or_else(Session::default, Session::hashed);
        Some(match self {
            Self::Begun { intent, attempt, session: hash, day, name, order, tag } => {
                let form = Form::parse(order.as_bytes()).ok()?;
                Record::Begun {
                    attempt: AttemptNo { intent: IntentNo(intent), index: attempt },
                    session: session(hash),
                    day: TradingDay(day),
                    name: name.map(ext::IntentId::new),
                    order: Arc::new(OrderRequest::from_fields(form.iter()).ok()?),
                    tag: tag.map(|tag| tag.parse()).transpose().ok()?,
                }
            }
            Self::Closed { intent, attempt, outcome, id, status, cut, denied } => Record::Closed {
                attempt: AttemptNo { intent: IntentNo(intent), index: attempt },
                outcome: match outcome {
                    OutcomeOnDisk::NotSent => Outcome::NotSent,
                    OutcomeOnDisk::NotExecuted => Outcome::NotExecuted,
                    OutcomeOnDisk::Rejected => Outcome::Rejected,
                    OutcomeOnDisk::Accepted => Outcome::Accepted { order_id: id.map(Arc::from) },
                    OutcomeOnDisk::UnknownUntilAbsent => Outcome::Unknown { resend: Resend::AfterAbsence },
                    OutcomeOnDisk::Unknown => Outcome::Unknown { resend: Resend::Never },
                },
                answer: match (status, cut) {
                    _ if denied => Answer::Denied,
                    (Some(status), _) => Answer::Status(status),
                    (None, true) => Answer::Cut,
                    (None, false) => Answer::None,
                },
            },
            Self::Seen { session: hash, day, ids, complete } => {
                Record::Seen { session: session(hash), day: TradingDay(day), order_ids: ids, complete }
            }
            Self::Found { intent, id, status } => {
                Record::Found { intent: IntentNo(intent), order_id: id, status }
            }
            Self::Confirmed { intent } => Record::Confirmed { intent: IntentNo(intent) },
            Self::Heard { intent } => Record::Heard { intent: IntentNo(intent) },
            Self::Ruled { intent, id } => Record::Ruled { intent: IntentNo(intent), order_id: id },
            Self::Unresolved { intent, reason, candidates } => {
                Record::Unresolved { intent: IntentNo(intent), reason, candidates }
            }
            Self::Renamed { from, day, intents } => {
                let intents = intents.into_iter().map(IntentNo).collect();
                Record::Renamed { from: TradingDay(from), day: TradingDay(day), intents }
            }
            Self::NamedUntil { intent, day } => {
                Record::NamedUntil { intent: IntentNo(intent), day: TradingDay(day) }
            }
            Self::Changed {} => Record::Changed,
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast_spec::Tag;

    use super::*;

    fn order() -> Arc<OrderRequest> {
        let form =
            b"symId=EQT_M%26M_EQ_NSE&qty=10.50&side=buy&type=limit&limitPrice=1500.05&product=delivery\
            &validity=day&remarks=%C3%A4%22%5C%0A";
        Arc::new(OrderRequest::from_fields(Form::parse(form).unwrap().iter()).unwrap())
    }

    #[test]
    fn every_entry_reads_as_it_was_written() {
        let attempt = AttemptNo { intent: IntentNo(u64::MAX), index: 3 };
        let (intent, day) = (IntentNo(7), TradingDay(-1));
        let mut records = vec![
            Record::Seen {
                session: Session::hashed(u64::MAX),
                day,
                order_ids: vec!["\u{0}\"".into(), "2401".into()],
                complete: true,
            },
            Record::Found { intent, order_id: "o".into(), status: Some("rejected".into()) },
            Record::Found { intent, order_id: String::new(), status: None },
            Record::Unresolved { intent, reason: "near_match".into(), candidates: Vec::new() },
            Record::Unresolved { intent, reason: "no_baseline".into(), candidates: vec!["o".into()] },
            Record::Confirmed { intent },
            Record::Heard { intent },
            Record::Ruled { intent, order_id: None },
            Record::Ruled { intent, order_id: Some("o".into()) },
            Record::Renamed { from: day, day: TradingDay(0), intents: [intent].into() },
            Record::NamedUntil { intent, day },
            Record::Changed,
        ];
        for (session, name) in
            [(Session::default(), None), (Session::hashed(9), Some(ext::IntentId::new("ä\n")))]
        {
            for tag in [None, Some(Tag::from_draw(7))] {
                let name = name.clone();
                records.push(Record::Begun { attempt, session, day, name, order: order(), tag });
            }
        }
        for outcome in [
            Outcome::NotSent,
            Outcome::NotExecuted,
            Outcome::Rejected,
            Outcome::Accepted { order_id: None },
            Outcome::Accepted { order_id: Some("o\"".into()) },
            Outcome::Unknown { resend: Resend::Never },
            Outcome::Unknown { resend: Resend::AfterAbsence },
        ] {
            for answer in [Answer::Status(504), Answer::Denied, Answer::Cut, Answer::None] {
                records.push(Record::Closed { attempt, outcome: outcome.clone(), answer });
            }
        }
        for account in ["", "trader ä"] {
            for record in &records {
                let entry = Entry { account: ext::Account::new(account), record: record.clone() };
                assert_eq!(Entry::decode(&entry.encode()).as_ref(), Some(&entry));
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_no_entry() {
        for text in [
            "",
            "{}",
            r#"["",{"later":{"intent":1}}]"#,
            r#"["",{"found":{"intent":1,"id":"o","more":1}}]"#,
            r#"["",{"begun":{"intent":1,"attempt":0,"day":1,"order":"symId=S"}}]"#,
            r#"["",{"begun":{"intent":1,"attempt":0,"day":1,"order":"symId=S&qty=1&side=buy&type=market&product=intraday&validity=day","tag":"no tag"}}]"#,
        ] {
            assert_eq!(Entry::decode(text.as_bytes()), None, "{text}");
        }
        let untagged = r#"["",{"begun":{"intent":1,"attempt":0,"day":1,"order":"symId=S&qty=1&side=buy&type=market&product=intraday&validity=day"}}]"#;
        let Some(Record::Begun { tag: None, .. }) =
            Entry::decode(untagged.as_bytes()).map(|entry| entry.record)
        else {
            panic!("an entry of a version without tags")
        };
        let known = r#"["",{"found":{"intent":1,"id":"o"}}]"#;
        assert!(Entry::decode(known.as_bytes()).is_some());
    }
}
