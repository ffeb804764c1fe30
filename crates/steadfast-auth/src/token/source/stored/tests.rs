use super::*;
use crate::{
    login::LoginMode,
    token::{Renewal, source::single_flight::SingleFlight, state::TokenState},
};

/// Each may have cost one of the account's sessions, so the shorter list would allow more logins.
#[test]
fn of_two_lists_of_logins_in_doubt_the_longer_counts_while_a_failure_is_not_written_down() {
    let now = Now { elapsed: Duration::from_secs(10_000), wall: 10_000_000, aging: 0 };
    let doubts = |n: usize| [9_998_u64, 9_999].into_iter().take(n);
    for (known, written) in [(2, 1), (1, 2), (2, 0), (0, 2)] {
        let token = TokenState::new(Renewal::new(), Some(LoginMode::Unattended));
        let flight = SingleFlight::new(token, 1, Arc::default(), true);
        let mut state = flight.lock();
        let own = doubts(known).map(Duration::from_secs).collect();
        state.token.policy.restore(Spent::default(), own, now.elapsed);
        state.unsaved = true;
        let mut record = Record::default();
        record.unknown.extend(doubts(written).map(|s| s.cast_signed() * 1_000));
        state.restore(&record, Spent::default(), now);
        assert_eq!(state.token.policy.unknown().count(), 2, "{known} known, {written} written");
    }
}
