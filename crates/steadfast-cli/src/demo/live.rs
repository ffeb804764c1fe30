use std::sync::atomic::{AtomicUsize, Ordering};

/// A client's progress, for display.
#[derive(Debug, Default)]
pub(crate) struct Live {
    asked: AtomicUsize,
    placed: AtomicUsize,
    otherwise: AtomicUsize,
    in_doubt: AtomicUsize,
}

/// [`Live`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glance {
    pub(crate) asked: usize,
    pub(crate) placed: usize,
    /// Orders that ended without an id.
    pub(crate) otherwise: usize,
    pub(crate) in_doubt: usize,
}

impl Live {
    pub(crate) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self, placed: bool) {
        let counter = if placed { &self.placed } else { &self.otherwise };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn in_doubt(&self, orders: usize) {
        self.in_doubt.store(orders, Ordering::Relaxed);
    }

    pub(crate) fn glance(&self) -> Glance {
        Glance {
            asked: self.asked.load(Ordering::Relaxed),
            placed: self.placed.load(Ordering::Relaxed),
            otherwise: self.otherwise.load(Ordering::Relaxed),
            in_doubt: self.in_doubt.load(Ordering::Relaxed),
        }
    }
}
