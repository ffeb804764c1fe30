use std::time::Duration;

use steadfast_call::ext;

use crate::{numbers::IntentNo, protocol::resolution::Unresolved};

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
    /// A list shows an order that the service refused as not executed (401, 429), or rejected (400, 403, 404, 405, 415).
    ///
    /// After a 401 or 429 the list is read once when the order cannot be late any more, two seconds after the
    /// [lateness bound](crate::Settings::lateness_bound). If its caller was told of the refusal, the list is also
    /// read as for a [`LateDuplicate`](Self::LateDuplicate) until the trading day ends, or until the next day ends if
    /// the refusal came within the lateness bound of midnight. Otherwise it is compared with lists that are read
    /// anyway. After a rejection, the latest thousand orders of the day are compared with lists that are read
    /// anyway and, the [lateness bound](crate::Settings::lateness_bound) after the rejection, by
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
    /// Also, an order was rejected, and a list shows one in another form that may be it, or its name was repeated and no list
    /// that would show it could be read: [`Unresolved`](Self::Unresolved) follows, with its identifier if there is one.
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
    /// Or lists show the identifier with another quantity, and by the lateness bound none has shown the order as it was
    /// sent, nor proved that the one shown is another ([`AckMismatch`](Self::AckMismatch)): a user may have changed it, or its
    /// own may be lost.
    ///
    /// At a shutdown: no list could be read until the [lateness bound](crate::Settings::lateness_bound) plus 5 s after the
    /// shutdown began, or the only lists lack orders that they have shown. Its caller was told that it is placed under this
    /// identifier. That may be right: look for the order. It is not in doubt, and never sent again under its name.
    ///
    /// It is reported once for each order acknowledged before the shutdown began. It is not reported where lists
    /// could be read and hold one session's orders, for orders of a session that is over; nor where the
    /// [settings](crate::Settings::list_shows) say that lists hide some orders.
    ///
    /// With candidates it takes the place of [`Excess`](Self::Excess): if the identifier is wrong, one of them is this
    /// order, and the others are too many; if it is right, all of them are too many. Cancel none before you know
    /// whether the order exists under its identifier, with its quantity, type and price. It is reported at a shutdown,
    /// before the trading day ends, or once lists can neither show nor contradict the identifier; and again when
    /// another candidate is listed. If a list shows the identifier after that, `Excess` follows. Around midnight it is
    /// also reported for an order of the day before, once: no list of that day has shown or contradicted it, and lists
    /// of the new day tell nothing about it.
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
    /// A list shows for the first time in a login session how the service shows the tags of orders.
    ///
    /// Told of each kind of echo once a session. From [`TagEcho::Whole`] on, tags decide whose listed orders are;
    /// [`TagEcho::Altered`] ends that.
    TagEcho {
        /// The acknowledged order that shows it.
        intent: IntentNo,
        /// The caller's own name for it.
        name: Option<ext::IntentId>,
        /// Its identifier.
        order_id: String,
        /// The form in which the list shows its tag.
        echo: TagEcho,
    },
    /// More equal orders are listed than were asked for.
    ///
    /// While an acknowledged order of its instrument and side is not listed, this is held back, until a list shows or
    /// [contradicts](Self::AckNotListed) that one, however long that takes. If no list can, it is reported as a
    /// candidate of [`AckUnconfirmed`](Self::AckUnconfirmed) instead.
    Excess {
        /// The order's number in this process.
        intent: IntentNo,
        /// The identifier of the order that is one too many.
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
    /// The machine's wall clock differs by more than ten minutes from the time known so far: the service's `Date`, or what
    /// the clock itself showed before. Which of the two is wrong is not known.
    ///
    /// The trading day ignores the difference until a `Date` of the service confirms it.
    ClockStepped {
        /// By how much they differ.
        by: Duration,
        /// Whether the wall clock is ahead.
        forward: bool,
    },
}

/// The form in which a list shows the tag of an acknowledged order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TagEcho {
    /// All of it.
    Whole,
    /// Its beginning.
    Cut,
    /// Nothing.
    Missing,
    /// Another text.
    Altered,
}

impl TagEcho {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Whole, Self::Cut, Self::Missing, Self::Altered];

    /// Returns the name in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Cut => "cut",
            Self::Missing => "missing",
            Self::Altered => "altered",
        }
    }
}
