//! Counts events, by closed sets of labels and without any identifier.

use std::time::Duration;

use crate::protocol::{
    effect::Effect,
    event::Answer,
    order_event::{OrderEvent, TagEcho},
    resolution::Reason,
    visibility::LagHistogram,
};

/// Counts of one account, or of all of them, since the process began.
///
/// Every label comes from a closed set; no order, instrument or account is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Lost outcomes, by cause; see [`ambiguous`](Self::ambiguous).
    ambiguous: [u64; Cause::ALL.len()],
    recovered: [u64; Confidence::ALL.len()],
    unresolved: [u64; Reason::ALL.len()],
    /// Acknowledged orders, by what lists showed of their tags; see [`tag_echoes`](Self::tag_echoes).
    tag_echoes: [u64; TagEcho::ALL.len()],
    /// How long after the lateness base orders in doubt were seen.
    pub visibility_lag: LagHistogram,
    /// Resends after a verified absence.
    pub resent: u64,
    /// Orders that appeared after they had been found absent or given up.
    pub late_duplicate: u64,
    /// Orders in the list that the service had refused or rejected.
    pub refused_but_placed: u64,
    /// Orders that are one too many.
    pub excess: u64,
    /// Answers that contradicted the protocol or the lists.
    pub conflict: u64,
    /// Acknowledged orders that no list showed.
    pub not_listed: u64,
    /// Acknowledged orders that a shutdown could read no list for.
    pub ack_unconfirmed: u64,
    /// Lists that lacked an order which they should have held.
    pub incomplete_lists: u64,
    /// Acknowledged orders that were listed in a form that does not match them.
    pub uncalibrated: u64,
}

/// How the outcome of a send was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A 504.
    GatewayTimeout,
    /// Any other 5xx.
    ServerError,
    /// A 400 that is not known to be a rejection.
    BadRequest,
    /// A 200 without a readable order id.
    UnreadableSuccess,
    /// An answer of any other status.
    OtherStatus,
    /// The gateway answered, and the answer was cut.
    Cut,
    /// No answer at all: a reset, a timeout, a caller that left.
    NoAnswer,
}

/// How certain it is that a found order is the intended one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Confidence {
    /// It shows every field of the order, and no other order or intent competed for it.
    Exact,
    /// It shows only some fields of the order, all of them equal.
    Partial,
    /// Equal orders were in doubt together: their number is certain, which intent owns which is a convention.
    Interchangeable,
    /// It shows the order's tag, in a session whose lists have shown the tags of acknowledged orders.
    Tagged,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::GatewayTimeout,
        Self::ServerError,
        Self::BadRequest,
        Self::UnreadableSuccess,
        Self::OtherStatus,
        Self::Cut,
        Self::NoAnswer,
    ];

    /// Returns the cause's name in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GatewayTimeout => "gateway_timeout",
            Self::ServerError => "server_error",
            Self::BadRequest => "bad_request",
            Self::UnreadableSuccess => "unreadable_success",
            Self::OtherStatus => "other_status",
            Self::Cut => "cut",
            Self::NoAnswer => "no_answer",
        }
    }

    pub(crate) fn of(answer: Answer) -> Self {
        match answer {
            Answer::Status(504) => Self::GatewayTimeout,
            Answer::Status(500..=599) => Self::ServerError,
            Answer::Status(400) => Self::BadRequest,
            Answer::Status(200) | Answer::Denied => Self::UnreadableSuccess,
            Answer::Status(_) => Self::OtherStatus,
            Answer::Cut => Self::Cut,
            Answer::Ended | Answer::None => Self::NoAnswer,
        }
    }
}

impl Confidence {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Exact, Self::Partial, Self::Interchangeable, Self::Tagged];

    /// Returns the confidence's name in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Partial => "partial",
            Self::Interchangeable => "interchangeable",
            Self::Tagged => "tagged",
        }
    }
}

impl Tally {
    /// Returns how many outcomes were lost for this cause.
    #[must_use]
    pub fn ambiguous(&self, cause: Cause) -> u64 {
        self.ambiguous[cause as usize]
    }

    /// Returns how many orders in doubt were found with this confidence.
    #[must_use]
    pub fn recovered(&self, confidence: Confidence) -> u64 {
        self.recovered[confidence as usize]
    }

    /// Returns how many orders ended without certainty for this reason.
    #[must_use]
    pub fn unresolved(&self, reason: Reason) -> u64 {
        self.unresolved[reason as usize]
    }

    /// Returns how many acknowledged orders with a tag were listed with this much of it.
    #[must_use]
    pub fn tag_echoes(&self, echo: TagEcho) -> u64 {
        self.tag_echoes[echo as usize]
    }

    /// Returns how many orders were absent beyond the lateness bound and not sent again.
    #[must_use]
    pub fn not_observed(&self) -> u64 {
        self.unresolved(Reason::NotObserved)
    }

    /// Returns how many outcomes were lost.
    #[must_use]
    pub fn ambiguous_total(&self) -> u64 {
        self.ambiguous.iter().sum()
    }

    /// Returns how many orders in doubt were found.
    #[must_use]
    pub fn recovered_total(&self) -> u64 {
        self.recovered.iter().sum()
    }

    /// Returns how many orders ended without certainty.
    #[must_use]
    pub fn unresolved_total(&self) -> u64 {
        self.unresolved.iter().sum()
    }

    /// Adds another account's counts.
    pub fn add(&mut self, other: &Self) {
        let Self { ambiguous, recovered, unresolved, tag_echoes, visibility_lag, .. } = other;
        let pairs = self.ambiguous.iter_mut().zip(ambiguous);
        let pairs = pairs.chain(self.recovered.iter_mut().zip(recovered));
        let pairs = pairs.chain(self.tag_echoes.iter_mut().zip(tag_echoes));
        for (mine, theirs) in pairs.chain(self.unresolved.iter_mut().zip(unresolved)) {
            *mine += theirs;
        }
        self.visibility_lag.add(visibility_lag);
        self.resent += other.resent;
        self.late_duplicate += other.late_duplicate;
        self.refused_but_placed += other.refused_but_placed;
        self.excess += other.excess;
        self.conflict += other.conflict;
        self.not_listed += other.not_listed;
        self.ack_unconfirmed += other.ack_unconfirmed;
        self.incomplete_lists += other.incomplete_lists;
        self.uncalibrated += other.uncalibrated;
    }

    /// Counts a resend after a verified absence.
    pub(crate) fn resend(&mut self) {
        self.resent += 1;
    }

    /// Counts a list that lacks an order which it should hold.
    pub(crate) fn fail_list(&mut self) {
        self.incomplete_lists += 1;
    }

    pub(crate) fn lose(&mut self, answer: Answer) {
        self.ambiguous[Cause::of(answer) as usize] += 1;
    }

    pub(crate) fn recover(&mut self, confidence: Confidence, lag: Duration) {
        self.recovered[confidence as usize] += 1;
        self.visibility_lag.observe(lag);
    }

    /// Counts an acknowledged order by what a list showed of its tag.
    pub(crate) fn tag_echo(&mut self, echo: TagEcho) {
        self.tag_echoes[echo as usize] += 1;
    }

    /// Counts the reported events; the other counters are increased where their events occur.
    pub(crate) fn take(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Report(event) = effect else { continue };
            match event {
                OrderEvent::Unresolved { unresolved, .. } => {
                    self.unresolved[unresolved.reason as usize] += 1;
                }
                OrderEvent::LateDuplicate { .. } => self.late_duplicate += 1,
                OrderEvent::RefusedButPlaced { .. } => self.refused_but_placed += 1,
                OrderEvent::Excess { .. } => self.excess += 1,
                OrderEvent::Conflict { .. } | OrderEvent::AckMismatch { .. } => self.conflict += 1,
                OrderEvent::AckNotListed { .. } => self.not_listed += 1,
                OrderEvent::AckUnconfirmed { .. } => self.ack_unconfirmed += 1,
                OrderEvent::Uncalibrated { .. } => self.uncalibrated += 1,
                OrderEvent::Recovered { .. }
                | OrderEvent::TagEcho { .. }
                | OrderEvent::Absent { .. }
                | OrderEvent::MayBeDoubled { .. }
                | OrderEvent::RefusalUnconfirmed { .. }
                | OrderEvent::PlacedUnheard { .. }
                | OrderEvent::ListNotMonotone { .. }
                | OrderEvent::ClockStepped { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_has_its_own_place_and_name() {
        for (at, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, at);
        }
        for (at, confidence) in Confidence::ALL.into_iter().enumerate() {
            assert_eq!(confidence as usize, at);
        }
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
        let names = Cause::ALL.map(Cause::as_str).into_iter();
        let mut names: Vec<_> = names.chain(Confidence::ALL.map(Confidence::as_str)).collect();
        names.extend(Reason::ALL.map(Reason::as_str));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn every_answer_has_a_cause() {
        for (answer, cause) in [
            (Answer::Status(504), "gateway_timeout"),
            (Answer::Status(503), "server_error"),
            (Answer::Status(400), "bad_request"),
            (Answer::Status(200), "unreadable_success"),
            (Answer::Denied, "unreadable_success"),
            (Answer::Status(302), "other_status"),
            (Answer::Cut, "cut"),
            (Answer::None, "no_answer"),
        ] {
            assert_eq!(Cause::of(answer).as_str(), cause);
        }
    }

    #[test]
    fn sums_hold_both_parts() {
        let counted = |n: u64| {
            let mut tally = Tally {
                resent: n,
                late_duplicate: 2 * n,
                excess: 3 * n,
                conflict: 4 * n,
                not_listed: 7 * n,
                ack_unconfirmed: 8 * n,
                incomplete_lists: 5 * n,
                uncalibrated: 6 * n,
                ..Tally::default()
            };
            for _ in 0..n {
                tally.lose(Answer::None);
                tally.recover(Confidence::Exact, Duration::from_secs(n));
                tally.unresolved[Reason::NotObserved as usize] += 1;
            }
            tally
        };
        let mut sum = counted(2);
        sum.add(&counted(3));
        assert_eq!(sum.visibility_lag.count(), 5);
        sum.visibility_lag = counted(5).visibility_lag;
        assert_eq!(sum, counted(5));
        assert_eq!(
            (sum.ambiguous(Cause::NoAnswer), sum.ambiguous(Cause::Cut), sum.ambiguous_total()),
            (5, 0, 5)
        );
        assert_eq!((sum.recovered(Confidence::Partial), sum.recovered_total()), (0, 5));
        assert_eq!((sum.not_observed(), sum.unresolved(Reason::Budget), sum.unresolved_total()), (5, 0, 5));
    }
}
