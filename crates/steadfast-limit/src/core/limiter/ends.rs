use std::time::Duration;

use steadfast_call::Lane;

use super::Limiter;
use crate::core::{
    decision::{Answer, Grant, Loss},
    event::Event,
    key_state::KeyState,
    queue::Queue,
    settings::Settings,
    spent::lost::LostAt,
    time::{LATEST, Nanos},
    trust::circuit_breaker::{After, Stop, Verdict},
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
                    if let Verdict::Opened(stop) = verdict {
                        self.on_429(id, stop, &grant, now);
                    }
                    self.keys.get_mut(id).0.optimistic_ended(share);
                }
            }
        }
        self.dispatch(grant.keys(), now);
    }

    /// Stops a zone after a 429.
    fn on_429(&mut self, id: usize, Stop { pause, after }: Stop, grant: &Grant, now: Nanos) {
        let (state, rules) = self.keys.get_mut(id);
        let (zone, key) = (rules.zone, state.key());
        // Windows no longer than the pause empty during it. A longer one is probably spent only if the probe after a
        // pause fails as well; a critical one that came before the time given by the service shows nothing new. The
        // lanes that must get out probe after every pause.
        if after == After::Pause && rules.longest() > pause {
            state.fill(now + rules.longest());
        }
        // A probe that fails shows that the quota is still spent, not that critical requests follow too fast.
        if grant.lane() == Lane::Critical && after == After::Nothing && !grant.proves_nothing() {
            let change = state.critical_mismatch(rules, now);
            self.report_critical_change(id, change);
        }
        let (state, rules) = self.keys.get_mut(id);
        // Critical requests are not spread, and may use more than the other lanes have learned.
        let is_explained =
            grant.proves_nothing() || grant.lane() == Lane::Critical && state.trust().spreads();
        if !is_explained {
            self.events.push(Event::ModelMismatch { zone, key, ours: state.uses(rules, now) });
            let change = state.mismatch(rules, now);
            self.report_change(id, change);
        }
        let again = after != After::Nothing;
        self.events.push(Event::Paused { zone, key, pause: Duration::from_nanos(pause), again });
        for waiter in self.keys.queue(id).map(Queue::waiters).unwrap_or_default() {
            let Some(known) = self.waiters.get(waiter) else { continue };
            let opens = self.keys.get(id).0.paused_until(known.place().lane, now);
            if known.send_by().is_some_and(|send_by| opens.is_some_and(|opens| send_by < opens)) {
                self.refuse_late(waiter, now);
            }
        }
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
            state.lose(rules, share, LostAt { given_up, counted }, now);
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
