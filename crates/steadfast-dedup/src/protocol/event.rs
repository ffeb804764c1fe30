use std::{sync::Arc, time::Duration};

use steadfast_call::{Outcome, ext};
use steadfast_spec::{OrderRecord, OrderRequest};

use crate::{
    numbers::{AttemptNo, IntentNo, ReadNo, Session, TradingDay},
    protocol::{read_fault::ReadFault, resolution::Unresolved, ruling::Ruling, wake::Purpose},
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
    /// A caller repeats, by its name, an order that was refused without having been executed.
    Reopened(IntentNo),
    /// A send of the intent is about to go down the stack. Recorded before it does.
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
        /// The meaning of the answer.
        outcome: Outcome,
        /// How it was answered.
        answer: Answer,
    },
    /// The call through the stack is over: nothing will be sent for it unless it is granted again.
    Concluded(IntentNo),
    /// The caller is gone.
    Abandoned(IntentNo),
    /// The list must be known before the next order.
    BaselineWanted,
    /// A last look for orders that ended without certainty is wanted.
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
    /// Replayed: a list of an earlier run confirmed every refusal (401, 429) of the intent up to this point.
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

/// An output of a [`OrderProtocol`](crate::OrderProtocol).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Calls that wait for this intent must look at its verdict.
    Decided(IntentNo),
    /// An event for the user.
    Report(OrderEvent),
    /// A list that was read long enough after the intent's refusals (401, 429) agrees with them; replayed as
    /// [`Event::Confirmed`]. Safe to lose.
    Confirmed(IntentNo),
    /// A list showed orders for the first time; replayed as [`Event::Known`]. Safe to lose.
    Seen {
        /// The session that lists them.
        session: Session,
        /// Their identifiers.
        order_ids: Vec<Arc<str>>,
        /// Whether it was a valid read of the whole list.
        complete: bool,
    },
    /// The current day has another name than it had so far.
    DayRenamed {
        /// The wrong one.
        from: TradingDay,
        /// The right one.
        day: TradingDay,
        /// The orders that were sent on it.
        intents: Vec<IntentNo>,
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
    /// An order appeared after it had been found absent or given up.
    ///
    /// The list is read for it 30 s, 1, 2, 5 and 15 min after that end, then every half hour until the trading day
    /// ends. A read that brings no list is repeated after 30 s.
    ///
    /// Where lists show no prices and so cannot tell orders apart, it may be another one of ours whose
    /// [`Unresolved`](Self::Unresolved) also names it as a candidate: check before you cancel it.
    LateDuplicate {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that appeared.
        order_id: String,
        /// The order that the caller was told of; `None` if the caller was told that it is unresolved. Then the
        /// intent owns the order that appeared, unless another order of ours or a stranger's could be it as well.
        kept: Option<String>,
    },
    /// An order was sent again because lists did not show it, and a later list shows that those lists prove less.
    ///
    /// That list lacks an order that earlier ones had shown, or one acknowledged long before it was read. The order
    /// may be placed twice, although no list shows that. This is reported once, and the order is watched for as
    /// before: if a second one appears, that is a [`LateDuplicate`](Self::LateDuplicate).
    MayBeDoubled {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The order that the caller was told of, if any.
        kept: Option<String>,
    },
    /// A list shows an order that the service refused, as not executed (401, 429) or for good (400, 403, 404, 405,
    /// 415).
    ///
    /// After a 401 or 429 the list is read once when the order cannot be late any more, two seconds after the
    /// [lateness bound](crate::Settings::lateness_bound). If its caller was told of the refusal, the list is also
    /// read as for a [`LateDuplicate`](Self::LateDuplicate) until the trading day ends, or until the next day ends if
    /// the refusal came within the lateness bound of midnight. Otherwise it is compared with lists that are read
    /// anyway. After a refusal for good, the latest thousand orders of the day are compared with lists that are read
    /// anyway and, the [lateness bound](crate::Settings::lateness_bound) after the refusal, by
    /// [`OrderTracker::shutdown`](crate::OrderTracker::shutdown). From then on the order's name stands for it.
    ///
    /// Where lists show no prices and so cannot tell orders apart, it may be another one of ours whose
    /// [`Unresolved`](Self::Unresolved) also names it as a candidate: check before you cancel it.
    ///
    /// In an [exclusive](crate::AccountMode::Exclusive) account the list may show it in another form, such as with
    /// another price, type or quantity, if no other order of ours can be it. It may be a stranger's all the same.
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
    /// A refusal (429) was returned to the caller, and no list can confirm it any more.
    ///
    /// The trading day has ended; or the last look of a [shutdown](crate::OrderTracker::shutdown) brought no list; or the
    /// order's login session is over, its token is not accepted any more, and lists of other sessions do not show the
    /// order.
    ///
    /// Also, an order was refused for good, and a list shows one in another form that may be it:
    /// [`Unresolved`](Self::Unresolved) follows with its identifier.
    ///
    /// The order may be placed: look for it. If its session is over, [`Unresolved`](Self::Unresolved) follows, which
    /// a later call with its name gets as well. This is not reported if a list of its session lacked the order once
    /// it could not be late any more. Where lists show [all orders of the account](crate::OrdersScope::Account), the
    /// end of a session does not matter.
    RefusalUnconfirmed {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
    },
    /// The service acknowledged an order, and no list has shown or [contradicted](Self::AckNotListed) it before a
    /// [shutdown](crate::OrderTracker::shutdown) ended; or listed orders without an owner may be this one, and no list
    /// will tell.
    ///
    /// At a shutdown: no list could be read until the [lateness bound](crate::Settings::lateness_bound) plus 5 s after the shutdown
    /// began, or the only lists lack orders that they have shown. Its caller was told that it is placed under this
    /// identifier. That may be right: look for the order. It is not in doubt, and never sent again under its name.
    ///
    /// It is reported once for each order acknowledged before the shutdown began. It is not reported where lists
    /// could be read and hold one session's orders, for orders of a session that is over; nor where the
    /// [settings](crate::Settings::list_shows) say that lists hide some orders.
    ///
    /// With candidates it takes the place of [`Excess`](Self::Excess): if the identifier is wrong, one of them is this
    /// order, and the others are too many; if it is right, all of them are too many. Cancel none before you know
    /// whether the order exists under its identifier. It is reported at a shutdown, before the trading day ends, or
    /// once lists can neither show nor contradict the identifier; and again when another candidate is listed. If a
    /// list shows the identifier after that, `Excess` follows. Around midnight it is also reported for an order of the
    /// day before, once: no list of that day has shown or contradicted it, and lists of the new day tell nothing
    /// about it.
    AckUnconfirmed {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that its answer gave it.
        order_id: String,
        /// The identifiers of listed orders without an owner that may be this one.
        candidates: Vec<String>,
    },
    /// The service acknowledged an order whose call had been dropped, so no caller gets the answer; or kept without being
    /// polled, so that its caller gets the answer at its next poll.
    PlacedUnheard {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// Its identifier.
        order_id: String,
    },
    /// More equal orders are listed than were asked for.
    ///
    /// While an acknowledged order of its instrument and side is not listed, this is held back, until a list shows or
    /// [contradicts](Self::AckNotListed) that one, however long that takes. If no list can, it is reported as a
    /// candidate of [`AckUnconfirmed`](Self::AckUnconfirmed) instead.
    Excess {
        /// The order's number in this process.
        intent: IntentNo,
        /// The identifier of the surplus order.
        order_id: String,
    },
    /// The service contradicts itself: one identifier for two orders, or one that was listed before it was sent.
    ///
    /// An answer may have reached the wrong order. Neither order counts as placed any more, even if its caller was
    /// told so: both are searched for, and neither is sent again. [`Recovered`](Self::Recovered) or
    /// [`Unresolved`](Self::Unresolved) reports how each of them ends.
    Conflict {
        /// The order that just got the identifier.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The order that had it before.
        other: Option<IntentNo>,
        /// The identifier.
        order_id: String,
    },
    /// Lists lack the identifier that an answer gave to an order, for longer than any order is late.
    ///
    /// Its answer may have been another order's. Its caller was told that it is placed. It is searched for from now
    /// on and never sent again; [`Recovered`](Self::Recovered) or [`Unresolved`](Self::Unresolved) reports how it
    /// ends. If a list shows the identifier later, the order is `Recovered` under it, or a
    /// [`LateDuplicate`](Self::LateDuplicate) reports it if the order was unresolved by then.
    ///
    /// This takes two lists that lack the identifier, one read after the [lateness
    /// bound](crate::Settings::lateness_bound) and one two seconds later, so where lists can be read it is reported
    /// within that bound plus 5 s of the answer. While acknowledged orders are not listed yet, the list is read for
    /// them, in the slowest lane, a second after the bound of the first of them. A read that brings no list is
    /// repeated after 30 s. [`OrderTracker::shutdown`](crate::OrderTracker::shutdown) reads more often. While the
    /// identifier is missing, no order of its session is absent: a list that hides an order looks the same. A
    /// [ruling](crate::Ruling) ends that.
    ///
    /// It is not reported where lists lose orders that they have shown; where lists hold one session's orders and
    /// that session is over before the second list is read; where the [settings](crate::Settings::list_shows) say
    /// that lists hide some orders; and for orders that may have ended at once (market, ioc) where no list has shown
    /// an ended order.
    AckNotListed {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that its answer gave it.
        order_id: String,
    },
    /// A list shows another order under the identifier that an answer gave to an order.
    ///
    /// The other one has another instrument or side, or a quantity that was exchanged with another order's, or equals
    /// an order that was refused. The answer may have been another order's. Its caller was told of that identifier.
    /// Its order is searched for from now on and never sent again; [`Recovered`](Self::Recovered) or
    /// [`Unresolved`](Self::Unresolved) reports how it ends.
    ///
    /// An instrument counts as another one only if lists are known to use our name for the ordered one, or the one
    /// shown is that of another order of ours. A quantity counts only if the ordered one is listed too, under another
    /// order of ours with an exchanged quantity or as one too many, and no `modify-order` was sent since. A refused
    /// order counts only if the ordered one is listed as one too many. Otherwise the answer is believed, and this is
    /// an [`Uncalibrated`](Self::Uncalibrated). Within ten minutes of midnight a list may show an order of another
    /// day, so this comes after that.
    AckMismatch {
        /// The order's number in this process.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// The identifier that its answer gave it.
        order_id: String,
    },
    /// The list lacks an order that it has shown before; absence proves nothing in this session.
    ListNotMonotone {
        /// The identifier that is gone.
        order_id: String,
    },
    /// An acknowledged order is listed in a form that does not match it.
    ///
    /// Reported for each order that is listed with another quantity, or under an instrument name that may be a
    /// spelling of the list's own. Of orders with another price or type, only the first is reported.
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
    /// The trading day ignores the change until a `Date` of the service confirms it.
    ClockStepped {
        /// By how much it is off.
        by: Duration,
        /// Whether it is ahead.
        forward: bool,
    },
}
