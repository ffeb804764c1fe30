//! All that the page shows, as it is sent to it.
//!
//! Instants are milliseconds since the Unix epoch. Strips hold one number a second, the newest last.

use std::borrow::Cow;

use serde::Serialize;

use crate::sharing::Sharing;

/// Grows when a field changes its meaning or goes. Fields may be added.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// A word of a closed set.
pub(crate) type Word = Cow<'static, str>;

/// Makes the structs of this file. Tests also read them, and know every field.
macro_rules! shown {
    ($($(#[$doc:meta])* pub(crate) struct $name:ident { $($fields:tt)* })+) => {
        $($(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[cfg_attr(test, derive(serde::Deserialize), serde(deny_unknown_fields))]
        pub(crate) struct $name { $($fields)* })+
    };
}

shown! {
    /// Everything.
    pub(crate) struct State {
        pub(crate) schema_version: u32,
        pub(crate) at: u64,
        /// True if this viewer may halt and resume.
        pub(crate) may_trade: bool,
        pub(crate) head: Head,
        pub(crate) zones: Vec<Zone>,
        pub(crate) lanes: Vec<LaneStrip>,
        /// Orders whose callers have waited for some time, and those in doubt; the oldest first.
        pub(crate) doubts: Vec<Order>,
        /// Orders that were in doubt, or contradicted, and have an end; the newest first.
        pub(crate) resolved: Vec<Order>,
        /// Orders on which a person has to rule, as `POST /-/rule` knows them: a thousand at most.
        pub(crate) unresolved: Vec<Unruled>,
        pub(crate) calls: Calls,
        /// The newest first.
        pub(crate) log: Vec<Line>,
        /// The parts of the page that this version cannot tell.
        pub(crate) absent: Vec<Word>,
    }

    /// The facts that a glance must tell.
    pub(crate) struct Head {
        pub(crate) account: Option<String>,
        pub(crate) gateway: String,
        pub(crate) version: Word,
        pub(crate) started: u64,
        /// Orders that are looked for, because it is not known whether they exist.
        pub(crate) in_doubt: usize,
        /// Orders that are not looked for any more, and of which it is not known: a person has to look for them.
        pub(crate) unresolved: usize,
        /// Orders that are sent and not answered.
        pub(crate) in_flight: usize,
        /// Orders whose callers wait.
        pub(crate) waiting: usize,
        /// `trading`, `halted` or `ending`.
        pub(crate) trading: Word,
        /// Why no order leaves, although nobody has halted; `null` if nothing withholds all of them.
        pub(crate) withheld: Option<String>,
        pub(crate) token: Token,
        /// The owner of the orders, where several sidecars share them.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(crate) sharing: Option<SharingState>,
    }

    /// Orders that several sidecars share.
    pub(crate) struct SharingState {
        /// `active` or `standby`.
        pub(crate) role: Word,
        /// This sidecar's name.
        pub(crate) process: String,
        /// The process that owns the orders, if it is another one and known.
        pub(crate) owner: Option<String>,
        /// Host and port of the store.
        pub(crate) store: String,
        /// How long a call to the store takes; `null` if it does not answer.
        pub(crate) round_trip_us: Option<u64>,
        /// In words: which sidecar places the orders, or why none does.
        pub(crate) words: String,
    }

    /// The service's token.
    pub(crate) struct Token {
        /// `valid`, `advisory`, `mandatory`, `expired`, `none`, `needs_human`, `latched` or `suspect`.
        pub(crate) phase: Word,
        pub(crate) ends_at: Option<u64>,
        /// Why requests that need it fail now, and when the next login starts by itself.
        pub(crate) trouble: Option<String>,
        /// True if logins have stopped until a reset.
        pub(crate) latched: bool,
        /// Sessions that were opened in the last 24 hours; a user has ten.
        pub(crate) sessions: usize,
        /// How far the service's clock is ahead.
        pub(crate) clock_offset_ms: Option<i64>,
    }

    /// One zone, where it is fullest.
    pub(crate) struct Zone {
        pub(crate) zone: Word,
        /// How far it trusts the gateway's way of counting.
        pub(crate) step: String,
        /// Requests without an answer whose slots are still held.
        pub(crate) lost: usize,
        /// The rest of a pause after a 429.
        pub(crate) paused_ms: Option<u64>,
        /// How long a request that came now would wait: a read, an order, a cancel.
        pub(crate) next_free_ms: NextFree,
        /// The limit of the shortest window that 429s have taught, if it is not the documented one.
        pub(crate) learned: Option<u32>,
        pub(crate) windows: Vec<Window>,
        pub(crate) in_flight: Vec<u32>,
        /// 1 in the seconds of a pause.
        pub(crate) paused: Vec<u32>,
    }

    /// The shortest waits of a zone's lanes.
    pub(crate) struct NextFree {
        pub(crate) read: u64,
        pub(crate) order: u64,
        pub(crate) cancel: u64,
    }

    /// One window of a zone.
    pub(crate) struct Window {
        pub(crate) period_ms: u64,
        pub(crate) limit: u32,
        /// How many slots only cancels may use.
        pub(crate) reserved: u32,
        /// How many slots were spent.
        pub(crate) used: Vec<u32>,
    }

    /// One lane, over all zones.
    pub(crate) struct LaneStrip {
        pub(crate) lane: Word,
        /// How long a request that came now would wait in the slowest zone where one waits.
        pub(crate) next_free_ms: u64,
        pub(crate) waiting: Vec<u32>,
    }

    /// One order.
    pub(crate) struct Order {
        pub(crate) name: String,
        /// Its terms in words.
        pub(crate) what: String,
        /// `buy`, `sell`, or empty if it is not known.
        pub(crate) side: Word,
        /// How it stands: `waiting`, `unheard` (its caller went away), `in_doubt`, `unresolved`, or how it ended:
        /// `recovered`, `resent`, `acknowledged`, `placed_unheard`, `late` or `not_placed`.
        pub(crate) stage: Word,
        pub(crate) asked_at: u64,
        pub(crate) ended_at: Option<u64>,
        pub(crate) order_id: Option<String>,
        /// The reason for which it is in doubt.
        pub(crate) reason: Option<String>,
        /// Listed orders that may be it.
        pub(crate) candidates: Vec<String>,
        pub(crate) steps: Vec<Step>,
    }

    /// An order on which a person has to rule.
    pub(crate) struct Unruled {
        /// The account and the number of the order, by which the journal knows it.
        pub(crate) account: String,
        pub(crate) intent: u64,
        pub(crate) name: Option<String>,
        /// Its side and its terms in words.
        pub(crate) what: String,
        /// The target of the call that rules on it, without the ruling: `&placed=ORDER-ID` or `&not-placed=`.
        pub(crate) rule: String,
    }

    /// Something that happened to an order.
    pub(crate) struct Step {
        pub(crate) at: u64,
        pub(crate) words: String,
    }

    /// The calls of the last two minutes.
    pub(crate) struct Calls {
        /// The time that the figures cover.
        pub(crate) span_ms: u64,
        pub(crate) all: Vec<u32>,
        /// Those that did not end as accepted.
        pub(crate) failed: Vec<u32>,
        /// The busiest first.
        pub(crate) endpoints: Vec<EndpointCalls>,
        /// Requests that the sidecar refused from their head, since the start.
        pub(crate) refused: Vec<Refused>,
    }

    /// The calls of one endpoint.
    pub(crate) struct EndpointCalls {
        pub(crate) endpoint: Word,
        pub(crate) count: u32,
        pub(crate) accepted: u32,
        pub(crate) rejected: u32,
        /// Refused by the service: 401 and 429.
        pub(crate) not_executed: u32,
        pub(crate) not_sent: u32,
        pub(crate) unknown: u32,
        /// The caller went away before.
        pub(crate) dropped: u32,
        /// Calls that took more than one send.
        pub(crate) repeated: u32,
        /// Until the head of the answer, waits and repeats included.
        pub(crate) p50_us: u64,
        pub(crate) p99_us: u64,
    }

    /// Requests that were refused for one reason.
    pub(crate) struct Refused {
        pub(crate) reason: Word,
        pub(crate) count: u64,
    }

    /// Something that an operator may want to know.
    pub(crate) struct Line {
        pub(crate) at: u64,
        /// `note`, `warning` or `alarm`.
        pub(crate) level: Word,
        pub(crate) words: String,
        /// The order's name.
        pub(crate) order: Option<String>,
    }
}

impl SharingState {
    pub(crate) fn of(sharing: &Sharing) -> Self {
        Self {
            role: Word::Borrowed(sharing.role()),
            process: sharing.process.to_string(),
            owner: sharing.owner.as_deref().map(str::to_owned),
            store: sharing.store.to_string(),
            round_trip_us: sharing.round_trip.map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
            words: sharing.words(),
        }
    }
}
