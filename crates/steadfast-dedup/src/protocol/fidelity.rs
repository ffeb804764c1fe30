use std::{collections::BTreeMap, sync::Arc, time::Duration};

use steadfast_spec::{Code, Decimal, OrderRecord, SymId};

use crate::{
    numbers::{IntentNo, LogicalTime},
    protocol::{intent::Intent, key::Key, matcher},
};

/// How faithfully lists show acknowledged orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fidelity {
    lists: ListFidelity,
    /// Acknowledged orders whose identifier our lists show for another order.
    mismatches: BTreeMap<Arc<str>, Mismatch>,
    /// When an order was last sent.
    sent: LogicalTime,
    /// When a change of an order was last sent.
    changed: LogicalTime,
}

/// Whether acknowledged orders are recognised in lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListFidelity {
    #[default]
    Untested,
    Recognised,
    Failed,
    /// One is listed under another instrument, so any of our orders may be.
    Unlike,
}

/// An acknowledged order whose record shows another one.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    owner: IntentNo,
    shows: Shows,
    /// The key and quantity of the record, as far as it shows them: such an order is listed.
    listed: Option<(Key, Decimal)>,
    reported: bool,
    /// Until when lists may lack its own order, by the lateness bound. `None` where no later list would prove anything,
    /// and once one was read after that.
    open_until: Option<Duration>,
}

/// In which field the record differs.
#[derive(Clone, Debug)]
pub(crate) enum Shows {
    /// A leg that the service made for another order.
    Leg,
    Side,
    Instrument(Option<SymId>),
    Quantity(Decimal),
}

impl Shows {
    /// Returns how a record differs from an intent's order, in a field other than price or type.
    pub(crate) fn of(record: &OrderRecord, intent: &Intent) -> Option<Self> {
        let order = intent.order();
        if !matcher::may_be_its_instrument(record, order) {
            return Some(Self::Instrument(record.sym_id.as_deref().and_then(|shown| shown.parse().ok())));
        }
        if matcher::is_exit_leg(record) {
            return (!matcher::may_be_its_leg(record, order)).then_some(Self::Leg);
        }
        if matches!(record.side, Some(Code::Known(side)) if side != order.side()) {
            return Some(Self::Side);
        }
        record.qty.filter(|&qty| qty != order.qty()).map(Self::Quantity)
    }
}

impl Mismatch {
    pub(crate) fn owner(&self) -> IntentNo {
        self.owner
    }

    pub(crate) fn shows(&self) -> &Shows {
        &self.shows
    }

    /// Returns the key and quantity that the record shows, as far as it does.
    pub(crate) fn listed(&self) -> Option<&(Key, Decimal)> {
        self.listed.as_ref()
    }

    /// True while a list may still prove that it is another order.
    pub(crate) fn is_open(&self) -> bool {
        self.open_until.is_some()
    }
}

impl Fidelity {
    pub(crate) fn of_lists(&self) -> ListFidelity {
        self.lists
    }

    /// Notes that a list shows an acknowledged order as it was sent.
    pub(crate) fn recognise(&mut self) {
        if self.lists == ListFidelity::Untested {
            self.lists = ListFidelity::Recognised;
        }
    }

    /// Notes that a list shows an order in another form; true if that is news. It only gets worse.
    pub(crate) fn worsen(&mut self, found: ListFidelity) -> bool {
        let is_worse = self.lists != found && self.lists != ListFidelity::Unlike;
        if is_worse {
            self.lists = found;
        }
        is_worse
    }

    /// Notes that an order is sent now.
    pub(crate) fn note_send(&mut self, at: LogicalTime) {
        self.sent = at;
    }

    /// True if an order was sent since the last change: the next one concerns it, too.
    pub(crate) fn is_change_news(&self) -> bool {
        self.is_unchanged_since(self.sent)
    }

    /// Notes that a change of an order is sent now.
    pub(crate) fn note_change(&mut self, at: LogicalTime) {
        self.changed = at;
    }

    /// True if no change of an order was sent since this position.
    pub(crate) fn is_unchanged_since(&self, sent: LogicalTime) -> bool {
        sent > self.changed
    }

    pub(crate) fn begin_day(&mut self) {
        self.mismatches.clear();
        // How a service spells instruments does not change overnight.
        if self.lists != ListFidelity::Unlike {
            self.lists = ListFidelity::Untested;
        }
    }

    pub(crate) fn mismatches(&self) -> impl Iterator<Item = (&Arc<str>, &Mismatch)> {
        self.mismatches.iter()
    }

    pub(crate) fn has_mismatches(&self) -> bool {
        !self.mismatches.is_empty()
    }

    pub(crate) fn mismatch(&self, order_id: &str) -> Option<&Mismatch> {
        self.mismatches.get(order_id)
    }

    /// Notes that a record shows another order than its owner's; the first one counts.
    pub(crate) fn note_mismatch(
        &mut self,
        order_id: &str,
        owner: IntentNo,
        shows: Shows,
        listed: Option<(Key, Decimal)>,
        open_until: Option<Duration>,
    ) {
        let mismatch = Mismatch { owner, shows, listed, reported: false, open_until };
        self.mismatches.entry(order_id.into()).or_insert(mismatch);
    }

    /// Returns until when lists may lack the own order of the first open one.
    pub(crate) fn first_open(&self) -> Option<Duration> {
        self.mismatches.values().filter_map(|mismatch| mismatch.open_until).min()
    }

    /// Closes those whose own orders a list read at this time had to show; returns their owners.
    pub(crate) fn close_mismatches(&mut self, at: Duration) -> Vec<IntentNo> {
        let open = self.mismatches.values_mut();
        let closed = open
            .filter_map(|mismatch| mismatch.open_until.take_if(|until| *until < at).map(|_| mismatch.owner));
        closed.collect()
    }

    pub(crate) fn end_mismatch(&mut self, order_id: &str) {
        self.mismatches.remove(order_id);
    }

    pub(crate) fn keep_mismatches(&mut self, keep: impl Fn(&str, IntentNo) -> bool) {
        self.mismatches.retain(|order_id, mismatch| keep(order_id, mismatch.owner));
    }

    /// Returns the mismatches that were not reported yet, and counts them as reported.
    pub(crate) fn unreported_mismatches(&mut self) -> Vec<(Arc<str>, IntentNo)> {
        let unreported = self.mismatches.iter_mut().filter(|(_, mismatch)| !mismatch.reported);
        unreported
            .map(|(order_id, mismatch)| {
                mismatch.reported = true;
                (order_id.clone(), mismatch.owner)
            })
            .collect()
    }
}
