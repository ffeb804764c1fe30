use std::{sync::Arc, time::Duration};

use steadfast_call::{Outcome, ext};
use steadfast_spec::{OrderRecord, OrderRequest, Tag};

use crate::{
    numbers::{AttemptNo, IntentNo, ReadNo, Session, TradingDay},
    protocol::{read_fault::ReadFault, ruling::Ruling, wake::Purpose},
};

/// An input of a [`OrderProtocol`](crate::OrderProtocol).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Time has passed.
    Tick,
    /// This trading day has begun, or goes on. Days never go back; an earlier one changes nothing.
    DayBegan(TradingDay),
    /// The current trading day is this one: a clock that was wrong from the start had misnamed it.
    DayRenamed(TradingDay),
    /// An answer of the service names this day, and by its clock midnight is not near.
    ///
    /// If it is not ours, the service's lists show orders of that day alone, and orders in doubt end without certainty. If it
    /// is later, ours may be over, as on a machine that stood still over midnight: the names of orders that have left and are
    /// undecided stand for them until that day, too. The name of our own day takes that back.
    Dated(TradingDay),
    /// Whether midnight is near by any believable clock, ours or the service's.
    ///
    /// While it is, names and orders of yesterday also count today, and orders that are sent are never sent again.
    MidnightNear(bool),
    /// For how long the machine was suspended in total since the protocol's start. This time counts for ages alone.
    Slept(Duration),
    /// The wall clock was set, and nothing confirms it.
    ClockStepped {
        /// By how much.
        by: Duration,
        /// Whether it was set forward.
        forward: bool,
    },
    /// A caller wants an order.
    Opened {
        /// Its new number.
        intent: IntentNo,
        /// The order.
        order: Arc<OrderRequest>,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
    },
    /// All sends of the intent carry this tag; none has left yet.
    Tagged {
        /// The intent.
        intent: IntentNo,
        /// The tag, which no other order of the day has.
        tag: Tag,
    },
    /// From now on sends of the intent carry no tag, although earlier ones did: the process before had another setting.
    Untagged(IntentNo),
    /// A caller repeats, by its name, an order that was refused without having been executed.
    Reopened(IntentNo),
    /// A send of the intent is about to go down the stack. Recorded before it does.
    Begun {
        /// Its new number.
        attempt: AttemptNo,
        /// The session that it is sent in.
        session: Session,
    },
    /// The transport polled the send's body, and the order leaves now.
    Sent(AttemptNo),
    /// The transport polled the send's body, and the order was withheld.
    Withheld(AttemptNo),
    /// A send's answer arrived, or is lost.
    Closed {
        /// The attempt.
        attempt: AttemptNo,
        /// The meaning of the answer.
        outcome: Outcome,
        /// How it was answered.
        answer: Answer,
    },
    /// The call through the stack is over: nothing will be sent for it unless it is granted again.
    Concluded(IntentNo),
    /// The caller is gone.
    Abandoned(IntentNo),
    /// An order waits for a list to be compared with.
    BaselineWanted,
    /// A shutdown wants the list read a last time, for orders that appeared late or are not confirmed.
    LastLook,
    /// A user rules on an order that ended without certainty.
    Ruled {
        /// The order.
        intent: IntentNo,
        /// The ruling.
        ruling: Ruling,
    },
    /// A change of an order is about to be sent: from here on, its quantity may differ from the ordered one.
    Changed,
    /// A list that a caller read: what it holds counts, what it lacks does not.
    CallerList {
        /// The session that it was read in.
        session: Session,
        /// Its records.
        records: Vec<OrderRecord>,
    },
    /// A read of the list is about to go down the stack.
    ReadOpened {
        /// Its new number.
        read: ReadNo,
        /// Its purpose.
        purpose: Purpose,
    },
    /// An order would leave in this session, whose list was not asked for yet.
    SessionMet(Session),
    /// The token of this session is kept, so its list can be read when the session is over.
    SessionKept(Session),
    /// The list of this session cannot be read any more: its token is refused, or no longer kept.
    SessionLost(Session),
    /// The read leaves now.
    ReadStarted {
        /// The read.
        read: ReadNo,
        /// The session that it is sent in.
        session: Session,
    },
    /// This send of the read brought no list; it may be sent again.
    ReadTurnedAway(ReadNo),
    /// The read has not left and is given up for a more urgent one.
    ReadWithdrawn(ReadNo),
    /// The read has brought its whole list; this is a part of it, not the last one.
    ///
    /// A long list is taken in a few records at a time, so that other tasks get their turns.
    ReadPart {
        /// The read.
        read: ReadNo,
        /// Some of its records.
        records: Vec<OrderRecord>,
    },
    /// The read is over.
    ReadEnded {
        /// The read.
        read: ReadNo,
        /// Every record of the list that is not in its [parts](Self::ReadPart), or why there is no list.
        list: Result<Vec<OrderRecord>, ReadFault>,
    },
    /// Replayed: a list of an earlier run had shown these orders by this point.
    Known {
        /// The session that listed them.
        session: Session,
        /// Their identifiers; known ones may be left out.
        order_ids: Vec<String>,
        /// Whether it was a valid read of the whole list, so that other orders were not there.
        complete: bool,
    },
    /// Replayed: an earlier run found the intent's order in the list.
    Found {
        /// The intent.
        intent: IntentNo,
        /// The order's identifier.
        order_id: String,
        /// Its status, as far as shown.
        status: Option<String>,
    },
    /// Replayed: a list of an earlier run confirmed every refusal (401, 429) of the intent up to this point, or its
    /// rejection.
    Confirmed(IntentNo),
    /// Replayed: an earlier run found that the answer which named the intent's order proves nothing.
    Disbelieved(IntentNo),
    /// Replayed: an order of an earlier day ended without certainty. Its name stands for it until a user rules on it.
    NameKept {
        /// The intent.
        intent: IntentNo,
        /// Its day.
        day: TradingDay,
        /// The order.
        order: Arc<OrderRequest>,
        /// The caller's own name for it.
        name: ext::IntentId,
    },
    /// Replayed: the name of the intent's order stands for it until this day, too.
    NamedUntil {
        /// The intent.
        intent: IntentNo,
        /// The day.
        day: TradingDay,
    },
    /// The journal of earlier runs has been replayed.
    ///
    /// Sends without an answer are in doubt from here on, with the whole time to settle, and are never sent again.
    Restarted,
}

/// How an attempt ended: who answered, if anyone did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The gateway, with this status.
    Status(u16),
    /// The gateway, with a 200 whose envelope says `error`: by its own word it took no order.
    Denied,
    /// The gateway, with an answer that could not be read.
    Cut,
    /// No answer, and the connection has ended: nothing more of the request can arrive, but the gateway may still
    /// work on it.
    Ended,
    /// No answer, and no bound on when the rest of the request may arrive.
    None,
}
