use http::StatusCode;
use steadfast_call::{Class, Outcome, Resend};

/// How one send ended, in the terms of the table of repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// A layer on this side refused the request, and would refuse it again.
    Refused,
    /// Nothing left: no connection, or the request's body was never polled.
    NotSent,
    /// 429: the service counted the request and did not execute it.
    Throttled,
    /// 401: not executed. Only a new token changes the answer, and a repeat does not bring one.
    Unauthorized,
    /// Refused for good.
    Rejected,
    /// Executed.
    Accepted,
    /// Unknown. Once found absent, it may be sent again.
    InDoubt,
    /// Unknown, and the answer says that it may have been accepted.
    InDoubtForGood,
}

impl Ending {
    /// Every ending, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Refused,
        Self::NotSent,
        Self::Throttled,
        Self::Unauthorized,
        Self::Rejected,
        Self::Accepted,
        Self::InDoubt,
        Self::InDoubtForGood,
    ];

    /// Returns the ending of a send with this outcome; `refused` if the error is a refusal of a layer on this side.
    #[must_use]
    pub fn of(outcome: &Outcome, status: Option<StatusCode>, refused: bool) -> Self {
        match outcome {
            _ if refused => Self::Refused,
            Outcome::NotSent => Self::NotSent,
            Outcome::NotExecuted if status == Some(StatusCode::TOO_MANY_REQUESTS) => Self::Throttled,
            Outcome::NotExecuted => Self::Unauthorized,
            Outcome::Rejected => Self::Rejected,
            Outcome::Accepted { .. } => Self::Accepted,
            Outcome::Unknown { resend: Resend::AfterAbsence } => Self::InDoubt,
            // An outcome unknown to this version is never a reason to send again.
            _ => Self::InDoubtForGood,
        }
    }
}

/// True if a request of `class` whose send ended in `ending` may be sent again unchanged.
///
/// | | `Safe` | `VerifyFirst`, `Regenerate`, `OnlyIfNotExecuted` |
/// |---|---|---|
/// | `NotSent`, `Throttled` | yes | yes |
/// | `InDoubt` | yes | no |
/// | all others | no | no |
///
/// In doubt `VerifyFirst` has no repeat, because a layer further out resolves orders; and `Regenerate` has none, because
/// a repeat carries the same body with the same used code.
#[must_use]
pub fn may_repeat(class: Class, ending: Ending) -> bool {
    let is_unexecuted = matches!(ending, Ending::NotSent | Ending::Throttled);
    is_unexecuted || class == Class::Safe && ending == Ending::InDoubt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_meets_every_ending() {
        let columns = [Class::Safe, Class::VerifyFirst, Class::Regenerate, Class::OnlyIfNotExecuted];
        let table = [
            (Ending::Refused, [false, false, false, false]),
            (Ending::NotSent, [true, true, true, true]),
            (Ending::Throttled, [true, true, true, true]),
            (Ending::Unauthorized, [false, false, false, false]),
            (Ending::Rejected, [false, false, false, false]),
            (Ending::Accepted, [false, false, false, false]),
            (Ending::InDoubt, [true, false, false, false]),
            (Ending::InDoubtForGood, [false, false, false, false]),
        ];
        assert_eq!(table.map(|(ending, _)| ending), Ending::ALL);
        for (ending, row) in table {
            assert_eq!(columns.map(|class| may_repeat(class, ending)), row, "{ending:?}");
        }
    }

    #[test]
    fn the_ending_follows_from_outcome_and_status() {
        let doubt = |resend| Outcome::Unknown { resend };
        for (outcome, status, refused, ending) in [
            (Outcome::NotSent, None, true, Ending::Refused),
            (Outcome::NotSent, None, false, Ending::NotSent),
            (Outcome::NotExecuted, Some(429), false, Ending::Throttled),
            (Outcome::NotExecuted, Some(401), false, Ending::Unauthorized),
            (Outcome::NotExecuted, None, false, Ending::Unauthorized),
            (Outcome::Rejected, Some(403), false, Ending::Rejected),
            (Outcome::Accepted { order_id: None }, Some(200), false, Ending::Accepted),
            (doubt(Resend::AfterAbsence), Some(504), false, Ending::InDoubt),
            (doubt(Resend::AfterAbsence), None, false, Ending::InDoubt),
            (doubt(Resend::Never), Some(200), false, Ending::InDoubtForGood),
        ] {
            let status = status.map(|s| StatusCode::from_u16(s).unwrap());
            assert_eq!(Ending::of(&outcome, status, refused), ending, "{outcome:?} {status:?}");
        }
    }
}
