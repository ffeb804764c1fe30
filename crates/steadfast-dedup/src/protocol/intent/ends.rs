//! Where an intent stands, and what its caller was told.

use std::sync::Arc;

use crate::protocol::{
    attempt::{Attempt, AttemptState},
    doubt::Doubt,
    intent::Intent,
    phase::{Finding, Phase, RefusalCheck},
    resolution::Reason,
};

impl Intent {
    /// Takes back an unused grant; false if it had no permission to send.
    pub(crate) fn judge_again(&mut self) -> bool {
        match self.phase {
            Phase::Granted => self.phase = Phase::Doubt,
            Phase::Cleared => {}
            _ => return false,
        }
        true
    }

    /// Notes that no send of it may have placed an order.
    pub(crate) fn rest(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Searches for its order.
    pub(crate) fn search(&mut self, doubt: Doubt) {
        self.phase = Phase::Doubt;
        self.doubt = Some(Box::new(doubt));
    }

    /// Allows another send after an absence.
    pub(crate) fn grant(&mut self) {
        self.phase = Phase::Granted;
    }

    /// Waits for a list that confirms a refusal.
    pub(crate) fn await_check(&mut self, check: RefusalCheck) {
        self.phase = Phase::Refused(check);
    }

    /// Allows another send after a refusal that a list has confirmed.
    pub(crate) fn clear(&mut self) {
        self.phase = Phase::Cleared;
    }

    pub(crate) fn finish(&mut self, finding: Finding) {
        (self.phase, self.ruled) = (Phase::Finished(finding), false);
    }

    /// Notes that a user ruled on how it ended.
    pub(crate) fn note_ruled(&mut self) {
        self.ruled = true;
    }

    pub(crate) fn is_ruled(&self) -> bool {
        self.ruled
    }

    pub(crate) fn finding(&self) -> Option<&Finding> {
        match &self.phase {
            Phase::Finished(finding) => Some(finding),
            _ => None,
        }
    }

    /// True if it is decided, and one of its sends was lost for good: an order of that send may still appear.
    pub(crate) fn is_presumed_dead(&self) -> bool {
        let Some(finding) = self.finding() else { return false };
        let lost = |attempt: &&Attempt| matches!(attempt.state(), AttemptState::Doubt { .. });
        let told = usize::from(matches!(finding, Finding::Recovered { .. }));
        self.attempts.iter().filter(lost).count() > told + self.late
    }

    /// True if its caller was told that no list shows it.
    pub(crate) fn was_told_absent(&self) -> bool {
        matches!(self.finding(), Some(Finding::Unresolved(it)) if it.reason == Reason::NotObserved)
    }

    /// True if its name stands for it on later days, too: it is not decided, or only without certainty.
    pub(crate) fn keeps_name(&self) -> bool {
        match self.finding() {
            Some(Finding::Unresolved(unresolved)) => self.name.is_some() && !unresolved.reason.is_absence(),
            finding => finding.is_none(),
        }
    }

    /// Returns the order id that its caller was told.
    pub(crate) fn order_id(&self) -> Option<&Arc<str>> {
        match self.finding()? {
            Finding::Acknowledged { order_id } | Finding::Recovered { order_id, .. } => Some(order_id),
            Finding::Unresolved(_) | Finding::Refused | Finding::Rejected => None,
        }
    }

    /// True if its caller was told that it may be this order.
    pub(crate) fn was_told_of(&self, order_id: &str) -> bool {
        self.told_candidates().iter().any(|candidate| candidate == order_id)
    }

    /// Returns the orders that its caller was told it may be.
    pub(crate) fn told_candidates(&self) -> &[String] {
        match self.finding() {
            Some(Finding::Unresolved(unresolved)) => &unresolved.candidates,
            _ => &[],
        }
    }

    /// True if a user has ruled that it is not this order, by ruling that it was not placed.
    pub(crate) fn is_ruled_out(&self, order_id: &str) -> bool {
        self.was_told_absent() && self.was_told_of(order_id)
    }

    /// True while its order is searched for, or was found absent and not sent again yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Doubt | Phase::Granted)
    }

    /// Notes that the lists behind its resend may have lacked its order; true if that is news.
    pub(crate) fn suspect(&mut self) -> bool {
        !std::mem::replace(&mut self.suspected, true)
    }

    /// Counts an order of it that appeared late.
    pub(crate) fn count_late(&mut self) {
        self.late += 1;
    }

    /// Takes back that one did: it may be another intent's.
    pub(crate) fn uncount_late(&mut self) {
        self.late = self.late.saturating_sub(1);
    }

    /// True if its caller was told that it was refused or rejected.
    pub(crate) fn was_told_not_placed(&self) -> bool {
        matches!(self.finding(), Some(Finding::Refused | Finding::Rejected))
    }

    /// True if its last send was rejected, and its call has not ended yet.
    pub(crate) fn is_rejected(&self) -> bool {
        self.phase == Phase::Idle && self.was_refused()
    }
}
