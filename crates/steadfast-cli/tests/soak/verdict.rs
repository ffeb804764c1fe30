//! Decides whether anything grew.

use std::fmt;

use crate::client::Sample;

/// How much a client's memory may grow after it has warmed up: the allocator's own variation.
const MEMORY_KIB: f64 = 4_096.0;
/// How much more it may grow for each order, which is remembered until the day ends.
const MEMORY_KIB_AN_ORDER: f64 = 4.0;
const DESCRIPTORS: f64 = 8.0;
const THREADS: f64 = 2.0;
const TASKS: f64 = 16.0;

/// How many tasks a client may have when no call is made and nothing is in doubt: its own four loops, and those that
/// watch connections kept for the next call.
const TASKS_AT_REST: f64 = 16.0;

/// The client warms up for a quarter of the time. The middle of the second quarter is compared with that of the last
/// one; by medians, because a storm comes and goes.
#[derive(Debug)]
pub(crate) struct Verdict {
    seconds: usize,
    calls: f64,
    orders: f64,
    logins: f64,
    doubts: f64,
    memory_kib: Growth,
    descriptors: Growth,
    threads: Growth,
    tasks: Growth,
    tasks_at_rest: f64,
}

#[derive(Clone, Copy, Debug)]
struct Growth {
    early: f64,
    late: f64,
    allowed: f64,
}

impl Growth {
    fn is_too_much(self) -> bool {
        self.late - self.early > self.allowed
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} -> {:.0} (allowed: +{:.0})", self.early, self.late, self.allowed)
    }
}

impl Verdict {
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let (trading, resting): (Vec<Sample>, Vec<Sample>) =
            samples.iter().copied().partition(|sample| !sample.at_rest);
        let quarter = trading.len() / 4;
        assert!(quarter > 0, "it said nothing");
        let (early, late) = (&trading[quarter..2 * quarter], &trading[trading.len() - quarter..]);
        let growth = |allowed: f64, of: fn(&Sample) -> f64| Growth {
            early: median(early, of),
            late: median(late, of),
            allowed,
        };
        let [first, last] = [early[0], late[quarter - 1]];
        Self {
            seconds: trading.len(),
            calls: last.calls,
            orders: last.orders,
            logins: last.logins,
            doubts: trading.iter().map(|sample| sample.in_doubt).fold(0.0, f64::max),
            memory_kib: growth(MEMORY_KIB + MEMORY_KIB_AN_ORDER * (last.orders - first.orders), |sample| {
                sample.holds.memory_kib
            }),
            descriptors: growth(DESCRIPTORS, |sample| sample.holds.descriptors),
            threads: growth(THREADS, |sample| sample.holds.threads),
            tasks: growth(TASKS, |sample| sample.tasks),
            tasks_at_rest: resting.last().expect("it never came to rest").tasks,
        }
    }

    /// Returns the measurements for the table of evidence.
    pub(crate) fn figures(&self) -> String {
        let Self { seconds, calls, orders, .. } = self;
        format!("figures: seconds={seconds} calls={calls} orders={orders} kib_a_minute={:.0}", self.slope())
    }

    /// Returns KiB a minute: from the middle of the second quarter to that of the last is half of the time.
    fn slope(&self) -> f64 {
        (self.memory_kib.late - self.memory_kib.early) / (self.seconds as f64 / 120.0)
    }

    pub(crate) fn memory_grew(&self) -> bool {
        self.memory_kib.is_too_much()
    }

    /// # Panics
    ///
    /// If anything grew, or if nothing was tried.
    pub(crate) fn assert(&self) {
        assert!(!self.memory_grew(), "memory grew\n{self}");
        assert!(!self.descriptors.is_too_much(), "descriptors grew\n{self}");
        assert!(!self.threads.is_too_much(), "threads grew\n{self}");
        assert!(!self.tasks.is_too_much(), "tasks grew\n{self}");
        assert!(self.tasks_at_rest <= TASKS_AT_REST, "tasks are left\n{self}");
        assert!(self.calls > 20.0 && self.orders > 0.0, "nothing was tried\n{self}");
    }
}

fn median(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "soak of {} s: {} calls, {} orders, at most {} in doubt at once, {} logins",
            self.seconds, self.calls, self.orders, self.doubts, self.logins
        )?;
        writeln!(f, "memory, KiB     {}, {:.0} a minute", self.memory_kib, self.slope())?;
        writeln!(f, "descriptors     {}", self.descriptors)?;
        writeln!(f, "threads         {}", self.threads)?;
        write!(f, "tasks           {}, {} at rest", self.tasks, self.tasks_at_rest)
    }
}
