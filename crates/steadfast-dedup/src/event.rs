use std::{sync::Arc, time::Duration};

use steadfast_spec::{OrderRecord, OrderRequest, Outcome, ext};

use crate::{
    error::ReadFault,
    registry::Purpose,
    resolution::Unresolved,
    ruling::Ruling,
    stamp::{AttemptNo, Epoch, IntentNo, ReadNo, Session},
};

/// What a [`Registry`](crate::Registry) is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Time has passed.
    Tick,
    /// It is this trading day: it has begun, or goes on. Days never go back; an earlier one changes nothing.
    EpochBegan(Epoch),
    /// The trading day that goes on is this one: it was called by a clock that was wrong from the start.
    EpochCorrected(Epoch),
    /// Whether midnight is near by any believable clock, ours or the service's. While it is, yesterday's names and orders
    /// count as today's as well, and what is sent is never sent again.
    MidnightNear(bool),
    /// How long the machine was suspended, all in all, since the registry's start: time that counts for ages alone.
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
    /// A caller wants an order once more that was refused without having been executed, by the same name.
    Reopened(IntentNo),
    /// A send of it is about to go down the stack. Recorded before it does.
    Begun {
        /// Its new number.
        attempt: AttemptNo,
        /// The session that it is sent in.
        session: Session,
    },
    /// The transport polled its body, and it leaves now.
    Sent(AttemptNo),
    /// The transport polled its body, and it was withheld.
    Withheld(AttemptNo),
    /// Its answer arrived, or is lost.
    Closed {
        /// The attempt.
        attempt: AttemptNo,
        /// What the answer proves.
        outcome: Outcome,
        /// How it was answered.
        answer: Answer,
    },
    /// The call through the stack is over: nothing will be sent for it unless it is granted anew.
    Concluded(IntentNo),
    /// The caller is gone.
    Abandoned(IntentNo),
    /// The list must be known before the next order.
    BaselineWanted,
    /// The last look at orders that ended without certainty.
    LastLook,
    /// Somebody who looked for himself says what has become of an order that ended without certainty.
    Ruled {
        /// The order.
        intent: IntentNo,
        /// What has become of it.
        ruling: Ruling,
    },
    /// A change of an order is about to be sent: its quantity may not be the one that was ordered from here on.
    Changed,
    /// A list that a caller read for himself: good for what it holds, never for what it does not.
    Overheard {
        /// The session that it was read in.
        session: Session,
        /// Its records.
        records: Vec<OrderRecord>,
    },
    /// A read of the list is about to go down the stack.
    ReadOpened {
        /// Its new number.
        read: ReadNo,
        /// What it is for.
        purpose: Purpose,
    },
    /// An order would have left in this session, whose list nobody has asked for yet.
    SessionMet(Session),
    /// The token of this session is kept, so that its list can be read when it is over.
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
    /// What was sent of the read brought no list; it may be sent again.
    ReadTurnedAway(ReadNo),
    /// The read, which waits to leave, is given up for one that cannot wait.
    ReadWithdrawn(ReadNo),
    /// The read has brought its whole list, of which this is a part that is not the last: a long one is taken in a few
    /// records at a time, for the sake of others.
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
        /// Every record of the list that is not in its [parts](Self::ReadPart), or why there is none.
        list: Result<Vec<OrderRecord>, ReadFault>,
    },
    /// Replayed: a list of an earlier run had shown these orders by this point.
    Known {
        /// The session that listed them.
        session: Session,
        /// Their identifiers; those that were known before may be left out.
        order_ids: Vec<String>,
        /// Whether it was a valid read of the whole list, so that what it did not hold was not there.
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
    /// Replayed: an earlier run found that the answer which named the intent's order proves nothing.
    Disbelieved(IntentNo),
    /// Everything that an earlier run wrote down has been replayed.
    ///
    /// What is not answered is in doubt from here on, with the whole time to settle, and is never sent again.
    Restarted,
}

/// Who ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The gateway, with this status.
    Status(u16),
    /// The gateway, with a 200 whose envelope says `error`: by its own word it took no order.
    Denied,
    /// The gateway, with an answer that could not be read.
    Cut,
    /// Nobody, and its connection ended since: nothing more of it can arrive, and what has arrived may still be worked on.
    Ended,
    /// Nobody, and nobody promises that the rest of it does not arrive at any later time.
    None,
}

/// What a [`Registry`](crate::Registry) wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Whoever waits for this intent must look at its verdict.
    Decided(IntentNo),
    /// Somebody should know.
    Report(OrderEvent),
    /// A list showed orders for the first time; replayed as [`Event::Known`]. Safe to lose.
    Seen {
        /// The session that lists them.
        session: Session,
        /// Their identifiers.
        order_ids: Vec<Arc<str>>,
        /// Whether it was a valid read of the whole list.
        complete: bool,
    },
}

/// Something about an order that its caller may not have been told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrderEvent {
    /// An order in doubt was found.
    Recovered {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier.
        order_id: String,
    },
    /// An order in doubt could not be resolved.
    Unresolved {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// Why, and what it may be.
        unresolved: Unresolved,
    },
    /// An order was found absent and may be sent again.
    Absent {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
    },
    /// An order appeared after it had been taken for absent or given up.
    ///
    /// The list is looked at for it 30 s, 1, 2, 5 and 15 min after that, then every half an hour to the end of the trading
    /// day; a look that shows no list is made again after 30 s.
    ///
    /// Where a list does not tell orders apart, because it shows no prices, it may be another one of ours, whose
    /// [`Unresolved`](Self::Unresolved) names it as a candidate, too: look at it before you cancel it.
    LateDuplicate {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that appeared.
        order_id: String,
        /// The order that the caller was told of; `None` if he was told that it is not resolved. It is the order that
        /// appeared from now on, unless others of ours or of somebody else's could own that as well.
        kept: Option<String>,
    },
    /// An order was sent again because lists did not show it, and a later list, while it was watched for, has shown that they
    /// prove less: it lacks an order that they had shown, or one that was acknowledged long before it was read.
    ///
    /// The order may be placed twice, though no list shows that. It is told once, and watched for as before: if the other one
    /// appears, that is a [`LateDuplicate`](Self::LateDuplicate).
    MayBeDoubled {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The order that the caller was told of, if he was told of one.
        kept: Option<String>,
    },
    /// An order that the service said it had not executed (401, 429), or had refused for good (400, 403, 404, 405, 415), is in
    /// the list.
    ///
    /// After a 401 or a 429 it is looked for once when no order can be late any more, two seconds after the
    /// [lateness bound](crate::Settings::lateness_bound), and as after a [`LateDuplicate`](Self::LateDuplicate): until the end of
    /// the trading day if its caller was told of the refusal, and of the next day if that was within the lateness bound of
    /// midnight; otherwise in whatever list is read. After a refusal for good it is looked for in whatever list is read, and by
    /// [`Ledger::shutdown`](crate::Ledger::shutdown), of the latest thousand of the day. Its name means the order from then on.
    ///
    /// Where a list does not tell orders apart, because it shows no prices, it may be another one of ours, whose
    /// [`Unresolved`](Self::Unresolved) names it as a candidate, too: look at it before you cancel it.
    RefusedButPlaced {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that appeared.
        order_id: String,
        /// The order that the caller was told of, if one was placed after the refusal.
        kept: Option<String>,
    },
    /// The service said that it had not executed an order (429), its caller was told so, and no list has confirmed it: the
    /// trading day has ended; or the last look of a [shutdown](crate::Ledger::shutdown) showed no list; or the login session that
    /// the order was sent in is over, its token is not accepted any more, and other sessions' lists do not show its orders.
    ///
    /// The order may be placed: look for it. Where its session is over, [`Unresolved`](Self::Unresolved) follows, which is what a
    /// later call with its name is told. It is not told if a list of its session has lacked the order once no order could be
    /// late any more. Only where lists show [all orders of the account](crate::OrdersScope::Account) no end of a session matters.
    RefusalUnconfirmed {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
    },
    /// The service has acknowledged an order whose call was dropped before: nobody is left whom the answer could tell.
    PlacedUnheard {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// Its identifier.
        order_id: String,
    },
    /// There are more orders like this one than were asked for.
    Excess {
        /// The order's number in this process.
        intent: IntentNo,
        /// The identifier that nobody asked for.
        order_id: String,
    },
    /// The service contradicts itself: one identifier for two orders, or one that was listed before it was sent.
    ///
    /// An answer may have reached the wrong order. Neither order is taken for placed any more, also if its caller was told
    /// so: both are looked for, and neither is sent again. [`Recovered`](Self::Recovered) or
    /// [`Unresolved`](Self::Unresolved) tells how each of them ends.
    Conflict {
        /// The order that the identifier was just given to.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The order that had it before.
        other: Option<IntentNo>,
        /// The identifier.
        order_id: String,
    },
    /// The identifier that an answer gave to an order is in no list, longer after it than any order is late: its answer
    /// may have been another one's.
    ///
    /// Its caller was told that it is placed. It is looked for from now on and never sent again;
    /// [`Recovered`](Self::Recovered) or [`Unresolved`](Self::Unresolved) tells how it ends. If a list shows the identifier
    /// after all, only later than it should, the order is `Recovered` under it, or a [`LateDuplicate`](Self::LateDuplicate) that
    /// says so if it was unresolved by then.
    ///
    /// It is told within the [lateness bound](crate::Settings::lateness_bound) and 5 s of the answer where lists can be read:
    /// it takes two of them that lack the identifier, one read after the bound and one two seconds later. While acknowledged orders
    /// are in no list yet, the list is looked at for them a second after the bound of the first of them, and by
    /// [`Ledger::shutdown`](crate::Ledger::shutdown), in the slowest lane; a look that brings no list is made again after 30 s.
    /// While the identifier is missing, no order of its session is absent: a list that hides an order looks the same. A
    /// [ruling](crate::Ruling) ends that.
    ///
    /// It is not told where lists lose orders that they have shown, where the order's session is over before the second list is
    /// read and lists hold one session's orders, where the [settings](crate::Settings::list_shows) say that
    /// they hide some, and of orders that may have ended at once (market, ioc) where no list has shown an order that has ended.
    AckNotListed {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that its answer gave it.
        order_id: String,
    },
    /// The list shows another order under the identifier that an answer gave to an order: of another instrument or side, or
    /// of a quantity that was exchanged with another order's, or exactly one that was refused. The answer may have been another
    /// one's.
    ///
    /// Its caller was told of that identifier. Its order is looked for from now on and never sent again;
    /// [`Recovered`](Self::Recovered) or [`Unresolved`](Self::Unresolved) tells how it ends. An instrument is another one where
    /// lists are known to name it as it was ordered, or where the one that they show is that of another order of ours. A
    /// quantity proves something only if the one that was ordered is listed too, as another order of ours that shows a
    /// quantity of its own no more, or as one too many, and if no `modify-order` was sent since; so does a refused order, if the
    /// one that was ordered is listed as one too many. Otherwise the answer is believed, and this is an
    /// [`Uncalibrated`](Self::Uncalibrated).
    AckMismatch {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that its answer gave it.
        order_id: String,
    },
    /// The list no longer holds an order that it has shown; absence proves nothing in this session.
    ListNotMonotone {
        /// The identifier that is gone.
        order_id: String,
    },
    /// An acknowledged order is listed in a form that does not match it.
    ///
    /// Told of each order that is listed with another quantity, or under an instrument's name that may be a spelling of the
    /// list's own. Of a price or a type that differs it is told once.
    Uncalibrated {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier.
        order_id: String,
    },
    /// The machine's wall clock was set by more than ten minutes, or was wrong from the start.
    ///
    /// The trading day goes on as if it had not been, until a `Date` of the service confirms it.
    ClockStepped {
        /// By how much it is off.
        by: Duration,
        /// Whether it is ahead.
        forward: bool,
    },
}
