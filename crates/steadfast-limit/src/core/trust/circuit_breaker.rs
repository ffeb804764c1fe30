use std::time::Duration;

use steadfast_call::Lane;

use crate::core::{decision::Share, time::Nanos};

/// The reaction of a zone to the 429s of one key: it pauses, then lets one probe through, then goes on.
///
/// The pauses grow from one second to eight while the probes fail. A `Retry-After` replaces them, up to a minute.
///
/// In the critical lane a pause lasts eight seconds at most. A `Retry-After` to another lane does not lengthen it: a cancel
/// must get out, and the service may mean polls alone, or be wrong. For a minute after a pause begins, critical requests
/// leave one by one, because the quota may not be back for all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CircuitBreaker {
    state: State,
    /// When the last pause began. A refusal of a request granted earlier has the same cause.
    since: Nanos,
    /// The end of the pause, or of the time reserved for the request whose answer the zone awaits.
    until: Nanos,
    /// The end of the longest pause that the service asked for. It holds back all lanes but the critical one.
    asked_until: Nanos,
    /// How often the first pause has been doubled: once for each probe that was refused.
    doublings: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Requests pass; critical ones one by one, for a while after a pause.
    #[default]
    Closed,
    /// The zone pauses, or nothing has been granted since its pause.
    Open,
    /// A probe is on its way.
    HalfOpen,
}

/// The meaning of a 429 for its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was on its way when the zone stopped, and says nothing new.
    Straggler,
    /// The zone stops.
    Opened(Stop),
}

/// A stop of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// How long it lasts, in all lanes but the critical one.
    pub(crate) pause: Nanos,
    pub(crate) after: After,
}

/// The kind of pause that came before a refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// No pause.
    Nothing,
    /// The pause of the critical lane, whose probe it is. The service had asked the others to wait longer.
    OwnPause,
    /// A pause, whose probe it is.
    Pause,
}

impl CircuitBreaker {
    const FIRST_PAUSE: Nanos = 1_000_000_000;
    const MOST_DOUBLINGS: u8 = 3;
    const LONGEST_PAUSE: Nanos = 60_000_000_000;
    /// The longest that the critical lane waits between two tries: the schedule that §7 gives for a 429 ends there.
    const LONGEST_CRITICAL: Nanos = Self::FIRST_PAUSE << Self::MOST_DOUBLINGS;
    /// For how long after the begin of a pause critical requests leave one by one.
    const CAUTION: Nanos = 60_000_000_000;

    /// Returns when the zone admits the next request of `lane`.
    pub(crate) fn admits_at(&self, lane: Lane) -> Nanos {
        match (lane, self.state) {
            (Lane::Critical, _) => self.until,
            (_, State::Closed) => self.asked_until,
            (_, State::Open | State::HalfOpen) => self.until.max(self.asked_until),
        }
    }

    /// Returns the end of the pause in `lane`, if it is not over at `now`.
    pub(crate) fn paused_until(&self, lane: Lane, now: Nanos) -> Option<Nanos> {
        let own = if self.state == State::Open { self.until } else { 0 };
        let end = if lane == Lane::Critical { own } else { own.max(self.asked_until) };
        (end > now).then_some(end)
    }

    /// True if nothing of a pause is left to remember at `now`.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        match self.state {
            // Requests granted before the last pause may still be refused.
            State::Closed => !self.is_cautious(now) && self.asked_until <= now,
            // No probe was sent for as long as the longest pause, so the count of pauses is out of date.
            State::Open => self.until.max(self.asked_until) + Self::LONGEST_PAUSE <= now,
            State::HalfOpen => false,
        }
    }

    /// Records a grant of `lane` at `now`. True if the zone awaits its answer. Where critical requests leave one by
    /// one, the next one waits no longer than `apart` for it.
    pub(crate) fn granted(&mut self, lane: Lane, apart: Nanos, now: Nanos) -> bool {
        let reserved = match self.state {
            State::Closed if lane == Lane::Critical && self.is_cautious(now) => apart.min(Self::FIRST_PAUSE),
            State::Closed => return false,
            // ## Open => HalfOpen, HalfOpen => HalfOpen
            //
            // The pause is over, but whether the quota is back is unknown: one request tests it for all. If it is not
            // answered for as long as the pause was, the next one probes: a lost answer is noticed only half a minute
            // later, and cancels wait.
            State::Open | State::HalfOpen => {
                self.state = State::HalfOpen;
                Self::FIRST_PAUSE << self.doublings
            }
        };
        self.until = now + reserved;
        true
    }

    /// Records an answer other than 429.
    pub(crate) fn answered(&mut self, share: Share) {
        // ## HalfOpen => Closed
        //
        // The pause that the service asked for stays: it may mean polls alone.
        if self.awaits(share) && self.state != State::Open {
            *self = Self { since: self.since, asked_until: self.asked_until, ..Self::default() };
        }
    }

    /// Records that a request brought no answer: it never left, or its answer was lost.
    pub(crate) fn unanswered(&mut self, share: Share, now: Nanos) {
        // ## HalfOpen => Open
        //
        // Nothing was learned. The next request need not wait for this one, and is a probe if this was one.
        if self.awaits(share) && self.state != State::Open {
            if self.state == State::HalfOpen {
                self.state = State::Open;
            }
            self.until = now;
        }
    }

    /// Records a 429.
    pub(crate) fn refused(&mut self, share: Share, retry_after: Option<Duration>, now: Nanos) -> Verdict {
        // A `Retry-After` of zero right after a refusal is meaningless.
        let asked = retry_after
            .and_then(|after| u64::try_from(after.as_nanos()).ok().or(Some(Nanos::MAX)))
            .filter(|after| *after > 0)
            .map(|after| after.min(Self::LONGEST_PAUSE));
        // Whether `asked` may lengthen the pause of the critical lane.
        let binds_cancels = |asked| share.lane == Lane::Critical && asked <= Self::LONGEST_CRITICAL;
        if self.is_old(share) {
            if let Some(asked) = asked.filter(|_| self.state == State::Open || self.asked_until > now) {
                self.asked_until = self.asked_until.max(now + asked);
                if binds_cancels(asked) && self.state == State::Open {
                    self.until = self.until.max(now + asked);
                }
            }
            return Verdict::Straggler;
        }
        // ## Closed => Open, HalfOpen => Open
        let after = match self.state {
            State::HalfOpen if share.awaited && share.at < self.asked_until => After::OwnPause,
            State::HalfOpen if share.awaited => After::Pause,
            _ => After::Nothing,
        };
        self.doublings =
            if after == After::Nothing { 0 } else { (self.doublings + 1).min(Self::MOST_DOUBLINGS) };
        let own = Self::FIRST_PAUSE << self.doublings;
        self.state = State::Open;
        self.since = now.max(1);
        self.until = now + asked.filter(|asked| *asked <= own || binds_cancels(*asked)).unwrap_or(own);
        self.asked_until = self.asked_until.max(asked.map_or(0, |asked| now + asked));
        Verdict::Opened(Stop { pause: self.admits_at(Lane::Bulk) - now, after })
    }

    /// True if a request was granted before the last pause began.
    fn is_old(&self, share: Share) -> bool {
        self.since > 0 && share.at <= self.since
    }

    fn awaits(&self, share: Share) -> bool {
        share.awaited && !self.is_old(share)
    }

    fn is_cautious(&self, now: Nanos) -> bool {
        self.since > 0 && now < self.since + Self::CAUTION
    }
}

#[cfg(test)]
mod tests;
