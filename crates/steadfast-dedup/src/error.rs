use std::{error::Error, fmt, path::PathBuf};

use steadfast_call::{BoxError, causes, ext::IntentId, find_cause, one_line};
use steadfast_spec::{InvalidOrder, MalformedForm};

use crate::{
    journal::{JournalError, NotOwner},
    protocol::resolution::Unresolved,
};

/// An order whose outcome was lost with the transport and could not be resolved.
///
/// Its source is the transport's own error. Repeating the request may place the order twice.
pub struct InDoubt {
    unresolved: Unresolved,
    source: BoxError,
}

impl InDoubt {
    pub(crate) fn new(unresolved: Unresolved, source: BoxError) -> Self {
        Self { unresolved, source }
    }

    /// Returns what is known of the order.
    #[must_use]
    pub fn unresolved(&self) -> &Unresolved {
        &self.unresolved
    }
}

impl fmt::Display for InDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        write!(f, "order in doubt: {}", self.unresolved.reason)
    }
}

steadfast_call::debug_in_one_line!(InDoubt);

impl Error for InDoubt {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// Why this side withheld an order: this send of it did not leave.
///
/// It has nothing to do with a refusal or a rejection by the service, which are answers.
#[non_exhaustive]
pub enum OrderWithheld {
    /// Its path does not lead to the order list.
    UnknownPath,
    /// Its body failed or is too long for an order.
    UnreadableBody,
    /// Its body is not a form.
    MalformedForm(MalformedForm),
    /// It breaks a rule, so it could not be recognised in the list.
    InvalidOrder(InvalidOrder),
    /// Its intent id is longer than 1,024 bytes. The journal could not hold it.
    NameTooLong,
    /// Its intent id, this one, already stands for another order.
    IntentMismatch(IntentId),
    /// An earlier call with its intent id is still in doubt, or ended so.
    IntentInDoubt,
    /// It had joined a call by its intent id, and the service rejected that call's order.
    IntentRejected,
    /// The same order, whose caller is gone, is still in doubt; neither call has an intent id.
    TwinInDoubt,
    /// The stack below has no `SendGuardLayer` of the same tracker, which is needed to observe sends.
    SendGuardMissing,
    /// Its time to be sent had passed when its body was polled.
    SendByPassed,
    /// It was no longer wanted when its body was polled: found meanwhile, or its caller gone.
    NotWanted,
    /// It is a `market` or `stopmarket` order that was refused without having been executed, and was older than
    /// [`max_resend_age_market`](crate::Settings::max_resend_age_market) at its repeat.
    TooOld,
    /// Until its deadline it waited for other orders of its instrument and side, which are sent one after the other.
    KeyBusy,
    /// Orders are [halted](crate::OrderTracker::halt), or were since it was asked for.
    Halted,
    /// It would have left in a login session whose list is not known yet.
    NewSession,
    /// The service refused it without having executed it, and no list confirmed that in time. It may be sent later.
    RefusalUnchecked,
    /// Another process owns the account's orders, or may by now.
    NotOwner(NotOwner),
    /// The journal could not record its send.
    JournalFailed(JournalError),
    /// The journal at this path has a trading day more than one ahead of the service's `Date`.
    ///
    /// So it is unknown which of its names and orders are today's. Move it aside, or correct the clock that wrote it.
    JournalAhead(Option<PathBuf>),
    /// The machine's clock and the service's differ by more than ten minutes, on whatever day, and
    /// [`refuse_disputed_day`](crate::Settings::refuse_disputed_day) is set. One of the two is wrong.
    DayDisputed,
    /// The journal took too long to record its send. It may be sent later.
    JournalSlow,
    /// The journal has its send on the trading day before. It may be sent later, with a new entry.
    DayTurned,
}

/// An order that the service refused without executing it (401, 429), and whose repeat did not leave.
///
/// A list that was read after the refusal agrees with it. Its source says why the repeat did not leave.
pub struct NotRepeated {
    status: u16,
    source: BoxError,
}

impl NotRepeated {
    pub(crate) fn new(status: u16, source: BoxError) -> Self {
        Self { status, source }
    }

    /// Returns the status of the refusal.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }
}

impl fmt::Display for NotRepeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        write!(f, "order was refused with {}, not executed, and did not leave again", self.status)
    }
}

steadfast_call::debug_in_one_line!(NotRepeated);

impl Error for NotRepeated {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

impl fmt::Display for OrderWithheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        f.write_str(match self {
            Self::UnknownPath => "order path does not say where the order list is",
            Self::UnreadableBody => "order body cannot be read",
            Self::MalformedForm(_) => "order body is not a form",
            Self::InvalidOrder(_) => "order breaks a rule",
            Self::NameTooLong => "intent id is longer than 1,024 bytes",
            Self::IntentMismatch(name) => {
                return write!(f, "intent id {:?} stands for another order", name.as_str());
            }
            Self::IntentInDoubt => "intent id stands for an order in doubt",
            Self::IntentRejected => "order of the same intent id was rejected",
            Self::TwinInDoubt => "the same order is in doubt already",
            Self::SendGuardMissing => "no send guard below the dedup layer",
            Self::SendByPassed => "time to send the order has passed",
            Self::NotWanted => "order is no longer wanted",
            Self::TooOld => "order is too old to be sent again",
            Self::KeyBusy => "orders of the same instrument and side took until the deadline",
            Self::Halted => "orders are halted",
            Self::NewSession => "order list of the new session is not known yet",
            Self::RefusalUnchecked => "order list was not read in time after a refusal",
            Self::NotOwner(_) => "orders are not this process's",
            Self::JournalFailed(_) => "order cannot be written down before it is sent",
            Self::JournalAhead(Some(path)) => {
                return write!(f, "journal is of a day that the service has not reached: {}", path.display());
            }
            Self::JournalAhead(None) => "journal is of a day that the service has not reached",
            Self::DayDisputed => {
                "time by the machine's clock is not the service's, and one of the two is wrong: the trading day is not known"
            }
            Self::JournalSlow => "order was not written down in time",
            Self::DayTurned => "trading day ended before the order left",
        })
    }
}

steadfast_call::debug_in_one_line!(OrderWithheld);

impl Error for OrderWithheld {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::MalformedForm(source) => Some(source),
            Self::InvalidOrder(source) => Some(source),
            Self::NotOwner(source) => Some(source),
            Self::JournalFailed(source) => Some(source),
            _ => None,
        }
    }
}

impl Unresolved {
    /// Returns the unresolved order in an error's chain of sources, if there is one.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find_cause(error).map(InDoubt::unresolved)
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Arc};

    use steadfast_call::{Failure, Fate};
    use steadfast_spec::{Form, OrderRequest};

    use super::*;
    use crate::protocol::resolution::Reason;

    #[test]
    fn c06_debug_reads_like_display_with_all_causes() {
        let source = Arc::new(io::Error::other("no space"));
        let full = JournalError::Io { doing: "write", path: "j".into(), source };
        let refused = OrderWithheld::JournalFailed(full);
        assert_eq!(
            format!("{refused:?}"),
            "order cannot be written down before it is sent: journal cannot write j: no space"
        );
        assert_eq!(refused.to_string(), format!("{refused:?}"));
        let order = OrderWithheld::InvalidOrder(OrderRequest::from_fields([]).unwrap_err());
        assert!(order.to_string().starts_with("order breaks a rule: "), "{order}");
        let mismatch = OrderWithheld::IntentMismatch(IntentId::new("2026-11-26/1"));
        assert_eq!(mismatch.to_string(), "intent id \"2026-11-26/1\" stands for another order");
        let lost = Unresolved::new(Reason::Unverifiable, Vec::new());
        let doubt = InDoubt::new(lost, Failure::new(Fate::Lost { ended: None }, "reset").into());
        assert_eq!(doubt.to_string(), "order in doubt: unverifiable: answer lost: reset");
        let repeat = NotRepeated::new(429, Failure::refused("queue full").into());
        assert!(
            repeat.to_string().ends_with("again: request refused before it was sent: queue full"),
            "{repeat}"
        );
        assert_eq!(
            format!("{:?}", crate::protocol::ruling::InvalidRuling::UnknownIntent),
            "order is not known"
        );
    }

    #[test]
    fn what_is_wrong_with_an_order_is_the_cause_of_its_refusal() {
        let no_pair = Form::parse(b"a=%zz").unwrap_err();
        let nothing = OrderRequest::from_fields([]).unwrap_err();
        for (refused, why) in [
            (OrderWithheld::MalformedForm(no_pair), no_pair.to_string()),
            (OrderWithheld::InvalidOrder(nothing.clone()), nothing.to_string()),
            (OrderWithheld::JournalFailed(JournalError::Poisoned), JournalError::Poisoned.to_string()),
        ] {
            assert_eq!(refused.source().map(ToString::to_string), Some(why));
        }
        assert!(OrderWithheld::Halted.source().is_none());
    }
}
