use super::KeyState;
use crate::core::{rules::Rules, spent::lost::LostAt, time::Nanos};

/// State that outlives a token or a process.
impl KeyState {
    /// Forgets what the key has spent. Requests on their way stay counted.
    pub(crate) fn reset(&mut self) {
        self.changed();
        self.log.clear();
        self.lost.clear();
        self.smoother = None;
        if let Some(penalty) = &mut self.penalty {
            penalty.empty();
        }
    }

    /// Counts the long windows as spent until `until`, for the lanes that can wait.
    pub(crate) fn fill(&mut self, until: Nanos) {
        self.changed();
        self.penalty_mut().fill(until);
    }

    /// Counts a request that an earlier process may have sent, as [`lose`](Self::lose) does.
    pub(crate) fn assume_lost(&mut self, at: LostAt) {
        self.changed();
        self.lost.push(at);
    }

    /// Adds the stamps of an earlier process. Those in the future belong to requests that it lost.
    pub(crate) fn restore(&mut self, rules: &Rules, stamps: impl Iterator<Item = Nanos>, now: Nanos) {
        self.changed();
        let matters = |stamp: &Nanos| stamp + rules.retention > now;
        let (later, mut earlier): (Vec<_>, Vec<_>) = stamps.filter(matters).partition(|stamp| *stamp > now);
        earlier.extend(self.log.from(0, rules.unit));
        earlier.sort_unstable();
        self.log.clear();
        for stamp in earlier {
            self.log.push(stamp, rules.unit, rules.usual);
        }
        for stamp in later {
            self.lost.push(LostAt { given_up: now, counted: stamp });
        }
    }

    /// Returns the stamps of answered and lost requests that still matter at `now`.
    pub(crate) fn spent<'a>(&'a self, rules: &Rules, now: Nanos) -> impl Iterator<Item = Nanos> + use<'a> {
        let first = self.log.expired(now, self.retention(rules), rules.unit);
        self.log.from(first, rules.unit).chain(self.lost.counted().iter().copied())
    }
}
