use steadfast::limit::Lane;

use crate::sim::network::{Nanos, S};

/// The results of one or several sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) sessions: u64,
    /// Requests that left the client.
    pub(super) sends: u64,
    /// Requests that the gateway refused, whether or not the client learned of it.
    pub(super) http_429: u64,
    /// Those of them that another program's requests excuse, in a row that promises no others.
    pub(super) excused_429: u64,
    /// Those of all after the first minute of their session.
    pub(super) late_429: u64,
    /// The most in one session.
    pub(super) worst_429: u64,
    /// Virtual time.
    pub(super) ran: Nanos,
    /// The share of the quota that was used, summed over the sessions.
    pub(super) used: f64,
    /// How long each cancel waited until it left.
    pub(super) cancels: Vec<Nanos>,
    pub(super) bursts: Vec<BurstOfCancels>,
    /// How many bursts of cancels took longer than their bound.
    pub(super) slow_bursts: u64,
    /// When the tenth request left, and when the last one had ended, in the last session.
    pub(super) tenth_left: Nanos,
    pub(super) last_ended: Nanos,
    /// How many sessions were recounted by hand, and how many of them had a stretch that was too full.
    pub(super) recounted: u64,
    pub(super) overfull: u64,
}

/// Cancels that were asked for at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BurstOfCancels {
    pub(super) asked: Nanos,
    pub(super) count: u32,
    pub(super) left: u32,
    pub(super) last: Nanos,
}

impl Tally {
    pub(super) fn left(&mut self, lane: Lane, waited: Nanos, now: Nanos) {
        self.sends += 1;
        if self.sends == 10 {
            self.tenth_left = now;
        }
        if lane == Lane::Critical {
            self.cancels.push(waited);
        }
    }

    pub(super) fn arrived(&mut self, admitted: bool, is_excused: bool, now: Nanos) {
        self.http_429 += u64::from(!admitted);
        self.excused_429 += u64::from(!admitted && is_excused);
        self.late_429 += u64::from(!admitted && now >= 60 * S);
    }

    /// Adds the results of other sessions.
    pub(super) fn add(&mut self, session: Self) {
        self.sessions += session.sessions;
        self.sends += session.sends;
        self.http_429 += session.http_429;
        self.excused_429 += session.excused_429;
        self.late_429 += session.late_429;
        self.worst_429 = self.worst_429.max(session.worst_429);
        self.ran += session.ran;
        self.used += session.used;
        self.cancels.extend(session.cancels);
        self.bursts.extend(session.bursts);
        self.slow_bursts += session.slow_bursts;
        (self.tenth_left, self.last_ended) = (session.tenth_left, session.last_ended);
        self.recounted += session.recounted;
        self.overfull += session.overfull;
    }

    /// Returns the 429s that nothing excuses.
    pub(super) fn avoidable_429(&self) -> u64 {
        self.http_429 - self.excused_429
    }

    /// Returns the used share of the quota, averaged over the sessions.
    pub(super) fn used(&self) -> f64 {
        self.used / self.sessions.max(1) as f64
    }

    /// Returns the shortest wait that a share of the cancels, in thousandths, did not exceed.
    pub(super) fn cancel_wait(&self, share: usize) -> Option<Nanos> {
        let mut sorted = self.cancels.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * share).div_ceil(1_000);
        rank.checked_sub(1).and_then(|index| sorted.get(index)).copied()
    }

    /// Completes the tally of one session that ran until `end`.
    pub(super) fn close(&mut self, used: f64, round_trip: Nanos, end: Nanos) {
        (self.sessions, self.ran, self.used, self.worst_429) = (1, end, used, self.http_429);
        let slow = |burst: &&BurstOfCancels| {
            // The last cancels may still wait when the session ends; those beyond their bound count as slow.
            let last = if burst.left == burst.count { burst.last } else { end };
            last - burst.asked > burst.most(round_trip)
        };
        self.slow_bursts = self.bursts.iter().filter(slow).count() as u64;
    }
}

impl BurstOfCancels {
    /// Returns the longest that the last of them may wait: (⌈k ⁄ 10⌉ + 1) seconds and round trips.
    fn most(&self, round_trip: Nanos) -> Nanos {
        (Nanos::from(self.count.div_ceil(10)) + 1) * (S + round_trip)
    }
}
