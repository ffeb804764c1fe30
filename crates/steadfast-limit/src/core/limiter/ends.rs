use super::Limiter;
use crate::core::{
    decision::{Answer, Grant, Loss},
    key_state::KeyState,
    settings::Settings,
    time::{LATEST, Nanos},
    trust::circuit_breaker::Verdict,
};

/// The ends of granted requests.
impl Limiter {
    /// Records that the head of an answer arrived at `now`.
    ///
    /// # Panics
    ///
    /// If `grant` is not this limiter's.
    pub fn settle(&mut self, grant: Grant, answer: Answer, now: Nanos) {
        let now = self.advance(now);
        for (id, share) in grant.shares() {
            let (state, rules) = self.keys.get_mut(id);
            match answer {
                Answer::Accepted => {
                    let (critical, others) = state.answered(rules, share, now);
                    self.report_critical_change(id, critical);
                    self.report_change(id, others);
                }
                Answer::TooManyRequests { retry_after } => {
                    let verdict = state.refused(rules, share, retry_after, now);
                    if let Verdict::Opened { pause, after } = verdict {
                        self.on_429(id, (pause, after), &grant, now);
                    }
                    self.keys.get_mut(id).0.optimistic_ended(share);
                }
            }
        }
        self.dispatch(grant.keys(), now);
    }

    /// Records that the request left at `sent` and that its answer will never be seen.
    ///
    /// # Panics
    ///
    /// If `grant` is not this limiter's.
    pub fn lose(&mut self, grant: Grant, sent: Nanos, loss: Loss, now: Nanos) {
        let ended = match loss {
            Loss::Reset => Some(now),
            Loss::GivenUp => None,
        };
        self.lose_ended(grant, sent, ended, now);
    }

    /// Does the same, where nothing of the request could reach the service after `ended`. `None` means that this
    /// instant is unknown.
    pub(crate) fn lose_ended(&mut self, grant: Grant, sent: Nanos, ended: Option<Nanos>, now: Nanos) {
        let now = self.advance(now);
        let counted = match ended {
            Some(ended) => ended.min(now) + Settings::AFTER_RESET,
            None => now.saturating_add(self.settings.arrives_within).min(LATEST),
        };
        // A request whose patience has already run out is not waited for again, and none longer than the gateway may
        // count it.
        let given_up = now.min(sent.saturating_add(KeyState::PATIENCE)).min(counted);
        for (id, share) in grant.shares() {
            let (state, rules) = self.keys.get_mut(id);
            state.lose(rules, share, (given_up, counted), now);
        }
        self.dispatch(grant.keys(), now);
    }

    /// Records that the request certainly never left: its slots are free again.
    ///
    /// # Panics
    ///
    /// If `grant` is not this limiter's.
    pub fn refund(&mut self, grant: Grant, now: Nanos) {
        let now = self.advance(now);
        self.give_back(grant, now);
    }

    pub(super) fn give_back(&mut self, grant: Grant, now: Nanos) {
        for (id, share) in grant.shares() {
            self.keys.get_mut(id).0.give_back(share, now);
        }
        self.dispatch(grant.keys(), now);
    }
}
