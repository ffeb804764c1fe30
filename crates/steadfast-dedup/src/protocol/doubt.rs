use std::time::Duration;

use crate::numbers::{LogicalTime, Session};

/// The search for an order whose outcome was lost.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    /// When it was lost.
    pub(crate) since: Duration,
    /// The same as a position: only reads that start later can show an absence.
    pub(crate) from: LogicalTime,
    /// The base of lateness: the last instant at which the gateway may have passed the order on.
    pub(crate) base: Duration,
    /// When the search is given up.
    pub(crate) until: Duration,
    /// Whether that was put off already, to wait for other orders of the key to settle.
    prolonged: bool,
    /// Valid reads in the session of the attempt.
    pub(crate) here: Evidence,
    /// Reads that would be valid if they had been made in the attempt's session.
    pub(crate) elsewhere: Evidence,
    /// Why the latest read was useless, if it was.
    pub(crate) fault: Option<Fault>,
}

/// Reads that could have shown an order: how many, up to the number needed, and where the latest started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) reads: u8,
    pub(crate) latest: LogicalTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The list could not be read.
    Failed,
    /// The answer can never be used: forbidden, too long, or not a list.
    Unusable,
    /// The list lacked an order that it had shown before.
    NotMonotone,
}

impl Doubt {
    /// Begins a search at this time and position.
    pub(crate) fn new(since: Duration, from: LogicalTime, base: Duration, until: Duration) -> Self {
        let (here, elsewhere) = (Evidence::default(), Evidence::default());
        Self { since, from, base, until, prolonged: false, here, elsewhere, fault: None }
    }

    /// Returns until when the order could be listed, by the lateness bound.
    pub(crate) fn settles(&self, lateness: Duration) -> Duration {
        self.base.saturating_add(lateness)
    }

    /// Extends the search by this time; false if that was done before.
    pub(crate) fn prolong(&mut self, by: Duration) -> bool {
        if self.prolonged {
            return false;
        }
        self.prolonged = true;
        self.until = self.until.saturating_add(by);
        true
    }

    /// Counts a valid list that was asked for at this position; `here`: in the session of the attempt.
    pub(crate) fn count_list(&mut self, here: bool, evidence: LogicalTime) {
        if self.from >= evidence {
            return;
        }
        let reads = if here { &mut self.here } else { &mut self.elsewhere };
        reads.reads = reads.reads.saturating_add(1);
        reads.latest = reads.latest.max(evidence);
        self.fault = None;
    }

    /// Notes that the latest read was useless.
    pub(crate) fn note_fault(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }
}

/// The block that an order lost before midnight puts on later ones, until lists show nothing of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// From when on a list counts: the lateness bound after the order has settled.
    from: Duration,
    /// Lists in a row that showed nothing like it, and their session.
    clean: u8,
    session: Session,
}

impl Block {
    pub(crate) fn new(from: Duration) -> Self {
        Self { from, clean: 0, session: Session::default() }
    }

    /// Lets lists count only from this time on.
    pub(crate) fn put_off(&mut self, from: Duration) {
        self.from = from;
    }

    /// Counts a list read at this time; true if so many in a row have shown nothing of the order.
    pub(crate) fn pass(&mut self, at: Duration, session: Session, shown: bool, needed: u8) -> bool {
        if self.from > at {
            return false;
        }
        // A list of another session may lack orders that this one's shows.
        if shown || std::mem::replace(&mut self.session, session) != session {
            self.clean = 0;
        }
        self.clean += u8::from(!shown);
        self.clean >= needed
    }
}
