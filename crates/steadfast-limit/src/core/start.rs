use crate::core::{key_state::KeyState, rules::Rules, spent::lost::LostAt, time::Nanos};

/// A start that did not know all that was sent before it: what counts as spent in every key that is new to the limiter.
///
/// The keys that an earlier process used are not always known, so one value serves all. Once a key's windows have
/// passed, it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) spent: Assumed,
    /// When the limiter started. An earlier process had ended by then.
    pub(crate) at: Nanos,
    /// The requests of the earlier process may be counted for this long after its end.
    pub(crate) after_process: Nanos,
}

/// The slots that a start counts as spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assumed {
    /// As much as an earlier process may have sent after its last record.
    Unrecorded,
    /// All windows.
    All,
}

impl Start {
    /// Every grant is recorded within this time.
    pub(crate) const RECORDED_WITHIN: Nanos = 1_000_000_000;

    /// True if it has no effect on a key that is new at `now`.
    pub(crate) fn is_over(self, rules: &Rules, now: Nanos) -> bool {
        match self.spent {
            Assumed::All => self.at + rules.longest() <= now,
            Assumed::Unrecorded => self.counted_by(rules) + rules.retention <= now,
        }
    }

    /// Returns when the gateway has counted the requests of an earlier process, if ever.
    fn counted_by(self, rules: &Rules) -> Nanos {
        self.at + self.after_process + rules.settle
    }

    /// Applies it to a new key.
    pub(crate) fn prepare(self, state: &mut KeyState, rules: &Rules) {
        match self.spent {
            Assumed::All => state.fill(self.at + rules.longest()),
            Assumed::Unrecorded => {
                // The lanes that must get out do not wait for requests that were perhaps never sent. For these lanes they
                // count as given up two windows ago, which is past every rule.
                let shortest = rules.bounds.first().map_or(0, |bound| bound.period);
                let given_up = self.at.saturating_sub(2 * shortest);
                let at = LostAt { given_up, counted: self.counted_by(rules) };
                for _ in 0..rules.most_within(Self::RECORDED_WITHIN) {
                    state.assume_lost(at);
                }
            }
        }
    }
}

impl Rules {
    /// Returns how many requests can be granted within any stretch of `time`.
    fn most_within(&self, time: Nanos) -> u64 {
        let most = |limit: u32, period: Nanos| u64::from(limit) * time.div_ceil(period.max(1));
        self.bounds.iter().map(|bound| most(bound.limit, bound.period)).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_call::Lane;
    use steadfast_spec::{Scope, Zone};

    use super::*;
    use crate::core::{
        decision::ZoneId,
        key_state::Question,
        rules::quota::{MINUTE, Quota, SECOND},
    };

    const AT: Nanos = 1_000_000_000_000;
    const AFTER: Nanos = 7_000_000_000;
    const UNRECORDED: Start = Start { spent: Assumed::Unrecorded, at: AT, after_process: AFTER };
    const ALL: Start = Start { spent: Assumed::All, ..UNRECORDED };

    fn rules(quota: Quota) -> Rules {
        Rules::new(&quota).unwrap()
    }

    fn prepared(start: Start, rules: &Rules) -> KeyState {
        let mut state = KeyState::new(ZoneId(0), 7);
        start.prepare(&mut state, rules);
        state
    }

    #[test]
    fn as_much_is_missing_from_the_record_as_the_tightest_window_lets_through() {
        let quota = || Quota::new(Zone::GENERAL, Scope::AuthToken);
        let most = |quota| rules(quota).most_within(Start::RECORDED_WITHIN);
        assert_eq!(most(quota().limit(10, SECOND).limit(400, MINUTE)), 10);
        assert_eq!(most(quota().limit(400, MINUTE)), 400);
        assert_eq!(most(quota().limit(5, SECOND / 10).limit(400, MINUTE)), 50);
    }

    #[test]
    fn what_is_missing_from_the_record_does_not_hold_back_a_cancel() {
        let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND).limit(400, MINUTE);
        let rules = rules(quota.settle(Duration::from_secs(5)));
        let state = prepared(UNRECORDED, &rules);
        let opens = |lane| {
            state.opens(&rules, lane, Question::Next { ahead: 0 }, false, AT, &mut Vec::new()).unwrap()
        };
        assert!(opens(Lane::Critical) <= AT);
        assert!(opens(Lane::Trading) > AT + AFTER + rules.settle);
    }

    #[test]
    fn a_start_that_assumes_all_leaves_a_whole_window() {
        let rules = rules(Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND).limit(400, MINUTE));
        let mut spent = prepared(ALL, &rules);
        assert!(!spent.is_idle(&rules, AT + rules.longest() - 1));
        assert!(spent.is_idle(&rules, AT + rules.longest()));
    }

    #[test]
    fn a_start_is_over_with_the_last_window_that_it_fills_and_no_earlier() {
        let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND).limit(400, MINUTE);
        let rules = rules(quota.settle(Duration::from_secs(5)));
        let counted = AT + AFTER + rules.settle;
        for (start, over) in [(ALL, AT + rules.longest()), (UNRECORDED, counted + rules.retention)] {
            assert!(!start.is_over(&rules, over - 1), "{start:?}");
            assert!(start.is_over(&rules, over), "{start:?}");
        }
    }
}
