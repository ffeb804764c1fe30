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

use Cell::{Repeat, Return};

/// The action after an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Repeat,
    Return,
}

/// The classes, in the order of the table's columns.
const COLUMNS: [Class; 4] = [Class::Safe, Class::VerifyFirst, Class::Regenerate, Class::OnlyIfNotExecuted];

/// The whole policy of repeats: a row for each ending, a column for each class.
///
/// `Regenerate` has no repeat in doubt, because a repeat carries the same body with the same used code.
/// `VerifyFirst` has none, because a layer further out resolves orders in doubt.
const TABLE: [(Ending, [Cell; 4]); 8] = [
    //                        Safe    VerifyFirst  Regenerate  OnlyIfNotExecuted
    (Ending::Refused, /*       */ [Return, Return, Return, Return]),
    (Ending::NotSent, /*       */ [Repeat, Repeat, Repeat, Repeat]),
    (Ending::Throttled, /*     */ [Repeat, Repeat, Repeat, Repeat]),
    (Ending::Unauthorized, /*  */ [Return, Return, Return, Return]),
    (Ending::Rejected, /*      */ [Return, Return, Return, Return]),
    (Ending::Accepted, /*      */ [Return, Return, Return, Return]),
    (Ending::InDoubt, /*       */ [Repeat, Return, Return, Return]),
    (Ending::InDoubtForGood, /**/ [Return, Return, Return, Return]),
];

/// True if a request of `class` whose send ended in `ending` may be sent again unchanged.
#[must_use]
pub fn may_repeat(class: Class, ending: Ending) -> bool {
    let column = COLUMNS.iter().position(|c| *c == class);
    let row = TABLE.iter().find(|(e, _)| *e == ending);
    matches!((row, column), (Some((_, cells)), Some(column)) if cells[column] == Repeat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_meets_every_ending() {
        for class in COLUMNS {
            for ending in Ending::ALL {
                // Written a second time, as the rule instead of the table.
                let certainly_unexecuted = matches!(ending, Ending::NotSent | Ending::Throttled);
                let harmless_twice = class == Class::Safe && ending == Ending::InDoubt;
                assert_eq!(
                    may_repeat(class, ending),
                    certainly_unexecuted || harmless_twice,
                    "{class:?} {ending:?}"
                );
            }
        }
    }

    #[test]
    fn the_table_names_every_ending_once_and_in_order() {
        assert_eq!(TABLE.map(|(ending, _)| ending), Ending::ALL);
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
