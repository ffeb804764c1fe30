//! One listed or acknowledged order.

use std::{sync::Arc, time::Duration};

use steadfast_spec::OrderRecord;

use crate::{
    numbers::{IntentNo, LogicalTime, Session},
    protocol::{
        listed_orders::{
            copies::{Copies, RepeatedIds},
            fresh::Fresh,
            overflow::EntryNo,
            session_list::SessionList,
        },
        matcher,
    },
};

/// The facts about one order that lists and answers have told on the day.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    number: EntryNo,
    /// When a list that held it was complete, or its acknowledgement arrived; set once.
    first_seen: LogicalTime,
    owner: Option<IntentNo>,
    /// The sessions that list it.
    listed: Vec<Listed>,
    acknowledged: Option<Acknowledged>,
    comparison: Comparison,
    /// Which of its legs were listed, one bit each; none if only its identifier is known.
    legs: u16,
    copies: Copies,
    /// A list has shown it, perhaps in an earlier run or under another spelling.
    shown: bool,
    /// All records that lists have shown under its identifier are exit legs, which may be another order's.
    only_legs: bool,
    /// Answers gave it to more than one intent, or to one for which no list shows it. Answers that name it are not
    /// believed.
    contested: bool,
    /// The intent whose answer named it, if that answer was withdrawn.
    withdrawn_from: Option<IntentNo>,
    /// When the first list was read that should have shown it after its acknowledgement and did not.
    missed: Option<Duration>,
    /// It was reported, as a candidate or by an event of its own. [`Fresh`] has the same, and may be dropped meanwhile.
    flagged: bool,
    /// The intent that it was reported for, as the order of a send taken for dead.
    late: Option<IntentNo>,
    /// Whether it has an event of its own, and was not only named as a candidate.
    reported: bool,
}

/// Since when a session lists an order, and the latest of its lists that did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    session: Session,
    pub(super) first: LogicalTime,
    pub(super) last: LogicalTime,
}

/// In which session an order was acknowledged, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) session: Session,
    pub(super) at: Duration,
}

/// Whether the order's record was compared with what its owner asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Comparison {
    #[default]
    Due,
    /// With the record of this list of ours.
    By(LogicalTime),
    Over,
}

impl Entry {
    pub(super) fn new(number: EntryNo, seen: LogicalTime) -> Self {
        Self {
            number,
            first_seen: seen,
            owner: None,
            listed: Vec::new(),
            acknowledged: None,
            comparison: Comparison::default(),
            legs: 0,
            copies: Copies::default(),
            shown: false,
            only_legs: false,
            contested: false,
            withdrawn_from: None,
            missed: None,
            flagged: false,
            reported: false,
            late: None,
        }
    }

    pub(super) fn number(&self) -> EntryNo {
        self.number
    }

    pub(super) fn first_seen(&self) -> LogicalTime {
        self.first_seen
    }

    pub(super) fn owner(&self) -> Option<IntentNo> {
        self.owner
    }

    pub(super) fn own(&mut self, owner: IntentNo) {
        self.owner = Some(owner);
    }

    /// Gives it to an intent, unless it has an owner.
    pub(super) fn adopt(&mut self, owner: IntentNo) {
        self.owner.get_or_insert(owner);
    }

    /// Notes that an answer gave it to an intent; returns the first answer that did.
    pub(super) fn acknowledge(&mut self, owner: IntentNo, session: Session, at: Duration) -> Acknowledged {
        self.owner = Some(owner);
        *self.acknowledged.get_or_insert(Acknowledged { session, at })
    }

    pub(super) fn acknowledged(&self) -> Option<Acknowledged> {
        self.acknowledged
    }

    /// True if answers that name it are not believed.
    pub(super) fn is_contested(&self) -> bool {
        self.contested
    }

    /// Takes it from the intent whose answer named it. The next list shows it as new.
    pub(super) fn contest(&mut self) -> Option<IntentNo> {
        self.contested = true;
        let owner = self.owner.take();
        if owner.is_some() {
            (self.comparison, self.legs, self.withdrawn_from) = (Comparison::Due, 0, owner);
        }
        owner
    }

    /// True if an answer gave it to this intent and was withdrawn.
    pub(super) fn was_withdrawn_from(&self, number: IntentNo) -> bool {
        self.withdrawn_from == Some(number)
    }

    /// Notes that a list asked for at `at` should have shown it; returns when the first such list was asked for.
    pub(super) fn miss(&mut self, at: Duration) -> Duration {
        *self.missed.get_or_insert(at)
    }

    pub(super) fn missed(&self) -> Option<Duration> {
        self.missed
    }

    /// Notes that a list of a session, read by the poller, held it.
    pub(super) fn list(&mut self, its: &mut SessionList, session: Session, seen: LogicalTime) {
        its.begin(seen);
        match self.listed.iter_mut().find(|listed| listed.session == session) {
            // Repeated in the same list.
            Some(listed) if listed.last == seen => return,
            Some(listed) => listed.last = seen,
            None => {
                // Nearly all are listed in one, and all of a day are kept.
                self.listed.reserve_exact(1);
                self.listed.push(Listed { session, first: seen, last: seen });
                its.count_first();
            }
        }
        its.count_held();
    }

    /// Returns since when, and until when, lists of a session have shown it.
    pub(super) fn listed_in(&self, session: Session) -> Option<&Listed> {
        self.listed.iter().find(|listed| listed.session == session)
    }

    /// Notes that a list has shown it; true if none had before.
    pub(super) fn show(&mut self) -> bool {
        self.only_legs = false;
        !std::mem::replace(&mut self.shown, true)
    }

    /// Takes back that one has.
    pub(super) fn hide(&mut self) {
        self.shown = false;
    }

    /// Notes that a list has shown this record of it; true if none had shown any before.
    pub(super) fn show_record(&mut self, record: &OrderRecord) -> bool {
        let only_legs = (self.only_legs || !self.shown) && matcher::is_exit_leg(record);
        let is_first = self.show();
        self.only_legs = only_legs;
        is_first
    }

    /// True if all that lists have shown of it may be legs of another order.
    pub(super) fn is_shown_by_legs(&self) -> bool {
        self.only_legs
    }

    pub(super) fn is_shown(&self) -> bool {
        self.shown
    }

    /// Counts a record under its identifier.
    pub(super) fn note_copy(&mut self, repeated: &mut RepeatedIds, record: &OrderRecord, seen: LogicalTime) {
        repeated.note(&mut self.copies, record, seen);
    }

    /// True if this record in the list that was complete at `seen` is to be compared with its owner's order; `own` is
    /// false for a caller's list, after which it is compared again.
    pub(super) fn is_to_compare(&mut self, record: &OrderRecord, by_poller: bool, seen: LogicalTime) -> bool {
        let is_due = match self.comparison {
            Comparison::Due => true,
            // A list may hold it more than once, by its legs.
            Comparison::By(list) => list == seen,
            Comparison::Over => false,
        };
        // A leg alone decides nothing, unless it is another order's.
        if is_due && by_poller && !matcher::is_exit_leg(record) {
            self.comparison = Comparison::By(seen);
        }
        is_due
    }

    /// Notes that other records under its identifier are its legs.
    pub(super) fn end_comparison(&mut self) {
        self.comparison = Comparison::Over;
    }

    pub(super) fn has_compared(&self) -> bool {
        self.comparison == Comparison::Over
    }

    /// True if no list has shown this leg of the order yet: legs may share an identifier.
    pub(super) fn shows_another_leg(&mut self, record: &OrderRecord) -> bool {
        let leg = 1 << matcher::leg(record);
        let new = self.legs & leg == 0;
        self.legs |= leg;
        new
    }

    /// Lets the next list show this leg as new.
    pub(super) fn show_leg_again(&mut self, record: &OrderRecord) {
        self.legs &= !(1 << matcher::leg(record));
    }

    /// Lets the next list show all of its legs as new.
    pub(super) fn show_again(&mut self) {
        self.legs = 0;
    }

    pub(super) fn has_legs(&self) -> bool {
        self.legs != 0
    }

    /// Returns what a record shows of it, for as long as it has no owner.
    pub(super) fn fresh(&self, order_id: Arc<str>, record: OrderRecord, session: Session) -> Fresh {
        let (flagged, late) = (self.flagged, self.is_late());
        Fresh { order_id, first_seen: self.first_seen, record: Arc::new(record), session, flagged, late }
    }

    /// Notes that it was reported as a candidate.
    pub(super) fn flag(&mut self) {
        self.flagged = true;
    }

    /// Lets it be reported again.
    pub(super) fn unflag(&mut self) {
        self.flagged = false;
    }

    pub(super) fn is_flagged(&self) -> bool {
        self.flagged
    }

    /// Notes that it was reported by an event of its own.
    pub(super) fn report(&mut self) {
        (self.flagged, self.reported) = (true, true);
    }

    pub(super) fn is_reported(&self) -> bool {
        self.reported
    }

    /// Notes that it was reported as the order of an intent's send that was taken for dead.
    pub(super) fn flag_late(&mut self, number: IntentNo) {
        self.report();
        self.late = Some(number);
    }

    pub(super) fn is_late(&self) -> bool {
        self.late.is_some()
    }

    /// Takes that back for an order that may be another intent's, by the one that it was reported for; returns that
    /// one. It stays reported.
    pub(super) fn unflag_late(&mut self, may_be: impl Fn(IntentNo, LogicalTime) -> bool) -> Option<IntentNo> {
        let first_seen = self.first_seen;
        self.late.take_if(|number| may_be(*number, first_seen))
    }
}
