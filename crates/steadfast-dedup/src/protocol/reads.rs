use std::{collections::BTreeMap, time::Duration};

use crate::{
    numbers::{LogicalTime, ReadNo, Session, TradingDay},
    protocol::wake::Purpose,
};

/// The reads of the list: those under way, when the last ones were, and the first one of a day or session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    open: BTreeMap<ReadNo, Read>,
    pace: Pace,
    baseline: BaselineRead,
    /// How many reads in a row failed to provide a baseline, and when the last of them ended.
    failed: (u32, Duration),
    /// When the latest read that has ended was started, as a position; with or without a list.
    tried: LogicalTime,
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) purpose: Purpose,
    pub(crate) day: TradingDay,
    pub(crate) started: Option<ReadStart>,
    /// It goes in the slowest lane.
    pub(crate) can_wait: bool,
    /// It has left, and was not refused in a way that makes it wait to be sent again.
    pub(crate) on_wire: bool,
    /// The pace before this read.
    before: Pace,
    /// The part of its list that was taken in, if the list comes in parts.
    pub(crate) taken: Option<Taken>,
}

/// When a read left: its position for safety, its time for ages, and the session it was sent in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadStart {
    pub(crate) seq: LogicalTime,
    pub(crate) at: Duration,
    pub(crate) aging: Duration,
    pub(crate) session: Session,
}

/// The part of a list that has been taken in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// When the list was complete, before any part was taken in.
    pub(crate) completed: LogicalTime,
    /// Whether any of it was new.
    pub(crate) news: bool,
    /// It names more orders than a day can have.
    pub(crate) too_long: bool,
}

/// How much a read's list proves, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListWorth {
    /// Nothing: there is no list, or it cannot be used.
    Useless,
    /// The orders in it exist. It may be older than the read, so it may lack any other.
    MayBeOld,
    /// It is of the time of the read, and shows the new orders. It lacks an old one.
    LacksOrders,
    /// It is valid: an order that it lacks counts as missing.
    Valid,
}

impl ListWorth {
    /// True if there is a list.
    pub(crate) fn is_list(self) -> bool {
        self > Self::Useless
    }

    /// True if the list is not older than the read.
    pub(crate) fn is_current(self) -> bool {
        self > Self::MayBeOld
    }
}

/// When the list was last read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// By any read.
    pub(crate) last: Option<Duration>,
    /// By a read with the current token. Watches rely on those: they may show orders of any session.
    pub(crate) current: Option<Duration>,
    /// The last one of those failed, or its list was not valid.
    pub(crate) failed: bool,
    /// It brought no list at all, not even one that is not valid.
    pub(crate) without_list: bool,
    /// By a read that the next one keeps its distance from.
    pub(crate) spaced: Option<Duration>,
}

/// The read for the baseline, before an order is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BaselineRead {
    #[default]
    Unknown,
    /// By a read that starts after this position.
    Wanted(LogicalTime),
    Tried,
}

impl Taken {
    /// Returns the note of a list that was complete at this position, before any of it is taken in.
    pub(crate) fn none(completed: LogicalTime) -> Self {
        Self { completed, news: false, too_long: false }
    }

    /// Adds a part; `new`: it held an order for the first time.
    #[must_use]
    pub(crate) fn with_part(self, new: bool) -> Self {
        Self { news: self.news || new, ..self }
    }

    /// Notes that the list names more orders than a day can have.
    #[must_use]
    pub(crate) fn overlong(self) -> Self {
        Self { too_long: true, ..self }
    }
}

impl Reads {
    pub(crate) fn open(
        &mut self,
        number: ReadNo,
        purpose: Purpose,
        can_wait: bool,
        day: TradingDay,
        now: Duration,
    ) {
        let before = self.pace;
        self.open.insert(
            number,
            Read { purpose, day, started: None, can_wait, on_wire: false, before, taken: None },
        );
        self.pace(purpose, now);
    }

    pub(crate) fn get(&self, number: ReadNo) -> Option<&Read> {
        self.open.get(&number)
    }

    /// Notes that a read leaves; returns its purpose. The answer belongs to the last send.
    ///
    /// A read that is already over is unknown here; a late send of it counts for nothing.
    pub(crate) fn start(&mut self, number: ReadNo, start: ReadStart) -> Option<Purpose> {
        let read = self.open.get_mut(&number)?;
        read.started = Some(start);
        read.on_wire = true;
        let purpose = read.purpose;
        self.pace(purpose, start.at);
        Some(purpose)
    }

    /// Notes that a read was refused. It waits in the lane that it was opened in, and is sent again.
    pub(crate) fn turn_away(&mut self, number: ReadNo) {
        if let Some(read) = self.open.get_mut(&number) {
            read.on_wire = false;
        }
    }

    /// Gives up a read. If it has not left, the next one keeps its distance from the read before it.
    pub(crate) fn withdraw(&mut self, number: ReadNo) {
        if let Some(read) = self.open.remove(&number).filter(|read| read.started.is_none()) {
            self.pace = read.before;
        }
    }

    /// Notes that a part of a read's list was taken in.
    pub(crate) fn take(&mut self, number: ReadNo, taken: Taken) {
        if let Some(read) = self.open.get_mut(&number) {
            read.taken = Some(taken);
        }
    }

    pub(crate) fn end(&mut self, number: ReadNo) -> Option<Read> {
        self.open.remove(&number)
    }

    /// Drops all reads of an earlier process.
    pub(crate) fn end_all(&mut self) {
        self.open.clear();
    }

    pub(crate) fn rename_day(&mut self, wrong: TradingDay, right: TradingDay) {
        for read in self.open.values_mut().filter(|read| read.day == wrong) {
            read.day = right;
        }
    }

    pub(crate) fn last_pace(&self) -> Pace {
        self.pace
    }

    /// Keeps the next read at a distance from now, whatever its purpose.
    pub(crate) fn space(&mut self, now: Duration) {
        self.pace.spaced = Some(now);
    }

    /// Notes the list of a read that may hold orders of any session.
    pub(crate) fn note_current(&mut self, worth: ListWorth) {
        self.pace.failed = !worth.is_current();
        self.pace.without_list = !worth.is_list();
    }

    fn pace(&mut self, purpose: Purpose, now: Duration) {
        self.pace.last = Some(now);
        if purpose != Purpose::OwnSession {
            self.pace.current = Some(now);
        }
        // The baseline is one read for all orders. It must not delay the search for an order.
        if purpose != Purpose::Baseline {
            self.pace.spaced = Some(now);
        }
    }

    pub(crate) fn baseline(&self) -> BaselineRead {
        self.baseline
    }

    /// Asks for a baseline by a read that starts after this position.
    pub(crate) fn want_baseline(&mut self, since: LogicalTime) {
        self.baseline = BaselineRead::Wanted(since);
    }

    /// Forgets the baseline of the day before.
    pub(crate) fn forget_baseline(&mut self, now: Duration) {
        self.baseline = BaselineRead::Unknown;
        self.failed = (0, now);
    }

    /// Notes that a read ended which started here, and whether the list is known by now.
    pub(crate) fn end_try(&mut self, started: Option<LogicalTime>, is_known: bool, now: Duration) {
        self.tried = started.map_or(self.tried, |started| self.tried.max(started));
        let failed = if is_known { 0 } else { self.failed.0.saturating_add(1) };
        self.failed = (failed, now);
        if let BaselineRead::Wanted(since) = self.baseline
            && self.tried > since
        {
            self.baseline = BaselineRead::Tried;
        }
    }

    /// True if a read that started after this position has ended.
    pub(crate) fn has_tried(&self, since: LogicalTime) -> bool {
        self.tried > since
    }

    /// Returns how many reads in a row failed to provide a baseline, and when the last of them ended.
    pub(crate) fn failed_baselines(&self) -> (u32, Duration) {
        self.failed
    }
}
