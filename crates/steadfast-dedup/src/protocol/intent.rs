use std::{sync::Arc, time::Duration};

use steadfast_spec::{OrderRequest, ext};

use crate::{
    numbers::{LogicalTime, Session, TradingDay},
    protocol::{
        attempt::{Attempt, AttemptState, Never, Sent},
        key::Key,
        resolution::{Reason, Unresolved},
    },
};

/// One order that a caller wants, with everything that was tried for it.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) order: Arc<OrderRequest>,
    pub(crate) key: Key,
    pub(crate) name: Option<ext::IntentId>,
    pub(crate) epoch: TradingDay,
    /// When its caller asked for it, on the clock of ages.
    pub(crate) opened: Duration,
    /// It was sent so near midnight that it may be listed on either day.
    pub(crate) at_midnight: bool,
    /// If it was lost before midnight: what must happen before it stops blocking later orders.
    pub(crate) block: Option<Block>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) phase: Phase,
    pub(crate) caller_waits: bool,
    /// Whether its session's list was known when it was first sent.
    pub(crate) has_baseline: bool,
    /// Whether its last refusal was one of the token (401).
    pub(crate) token_refused: bool,
    /// Whether a resend was refused for good. Then the earlier sends are searched for once more and never sent again.
    pub(crate) reopened: bool,
    pub(crate) doubt: Option<Doubt>,
    /// It was reported that the lists behind its resend may have lacked its order.
    pub(crate) suspected: bool,
    /// Orders of it that appeared late, besides the one that its caller was told of.
    pub(crate) late: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing of it stands: not sent yet, or every send proved void.
    Idle,
    /// A send of it is not answered.
    Sending,
    /// A send of it was answered in a way that proves nothing.
    Doubt,
    /// Found absent; may be sent again if it is still absent at the body poll.
    Granted,
    /// A send of it was refused without execution (401, 429): nothing is sent until a list agrees.
    Refused(Check),
    /// A list agreed; may be sent again, unless a list shows it before the body poll.
    Cleared,
    /// Decided for good.
    Finished(Finding),
}

/// A refusal that no list has confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// When it came.
    pub(crate) since: Duration,
    /// The same as a position: only reads that start later can confirm it.
    pub(crate) from: LogicalTime,
    /// How long after that a list must be read to confirm it: lists lag.
    pub(crate) lag: Duration,
    /// It refused the token. Then the list may be refused as well.
    pub(crate) by_token: bool,
    /// The call waits only for this check: its caller is told of the refusal once it is confirmed.
    pub(crate) is_last: bool,
}

/// How an intent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Acknowledged {
        order_id: Arc<str>,
    },
    Recovered {
        order_id: Arc<str>,
        status: Option<String>,
    },
    Unresolved(Unresolved),
    /// The service refused it without having executed it, and its caller was told so.
    Refused,
    /// The service refused it for good, and its caller was told so. It is reported if a list shows it all the same;
    /// no read is made, and no call is kept waiting, for it.
    Rejected,
}

/// The search for an order whose outcome was lost.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    /// When it was lost.
    pub(crate) since: Duration,
    /// The same as a position: only reads that start later can show an absence.
    pub(crate) from: LogicalTime,
    /// The base of lateness: the last instant at which the gateway may have passed the order on.
    pub(crate) base: Duration,
    /// When the search is given up.
    pub(crate) until: Duration,
    /// Whether that was already extended, to wait for others to settle.
    pub(crate) prolonged: bool,
    /// Valid reads in the session of the attempt.
    pub(crate) here: Evidence,
    /// Reads that would be valid if they had been made in the attempt's session.
    pub(crate) elsewhere: Evidence,
    /// Why the latest read was useless, if it was.
    pub(crate) fault: Option<Fault>,
}

/// The block that an order lost before midnight puts on later ones, until lists show nothing of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// From when on a list counts: once settled, plus the lateness bound again.
    pub(crate) from: Duration,
    /// Lists in a row that showed nothing like it, and their session.
    pub(crate) clean: u8,
    pub(crate) session: Session,
}

/// Reads that could have shown an order: how many, up to the number needed, and where the latest started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) reads: u8,
    pub(crate) latest: LogicalTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The list could not be read.
    Failed,
    /// The answer can never be used: forbidden, too long, or not a list.
    Unusable,
    /// The list lacked an order that it had shown before.
    NotMonotone,
}

impl Intent {
    pub(crate) fn new(
        order: Arc<OrderRequest>,
        name: Option<ext::IntentId>,
        epoch: TradingDay,
        opened: Duration,
    ) -> Self {
        Self {
            key: Key::of_order(&order),
            order,
            name,
            epoch,
            opened,
            at_midnight: false,
            block: None,
            attempts: Vec::new(),
            phase: Phase::Idle,
            caller_waits: true,
            has_baseline: false,
            token_refused: false,
            reopened: false,
            doubt: None,
            suspected: false,
            late: 0,
        }
    }

    /// Returns its first send that may have placed an order.
    pub(crate) fn first_sent(&self) -> Option<Sent> {
        self.attempts.iter().find_map(Attempt::standing)
    }

    /// Returns its first send that may have placed an order, including refused ones.
    pub(crate) fn first_left(&self) -> Option<Sent> {
        self.attempts.iter().find_map(|attempt| attempt.standing().or(attempt.refused()))
    }

    /// Returns the session of its first send that may have placed an order.
    pub(crate) fn session(&self) -> Option<Session> {
        self.attempts.iter().find(|attempt| attempt.standing().is_some()).map(|attempt| attempt.session)
    }

    pub(crate) fn resends(&self) -> u32 {
        let standing = self.attempts.iter().filter(|attempt| attempt.standing().is_some()).count();
        u32::try_from(standing.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// True if an order first seen at this position could be one of its own.
    pub(crate) fn could_own(&self, first_seen: LogicalTime) -> bool {
        self.first_left().is_some_and(|sent| sent.seq < first_seen)
    }

    /// True if a send of it is taken for dead, and an order of that send may still appear.
    pub(crate) fn is_presumed_dead(&self) -> bool {
        let Some(finding) = self.finding() else { return false };
        let lost = |attempt: &&Attempt| matches!(attempt.state, AttemptState::Doubt { .. });
        let told = usize::from(matches!(finding, Finding::Recovered { .. }));
        self.attempts.iter().filter(lost).count() > told + self.late
    }

    /// True if its caller was told that no list shows it.
    pub(crate) fn was_told_absent(&self) -> bool {
        matches!(self.finding(), Some(Finding::Unresolved(it)) if it.reason == Reason::NotObserved)
    }

    /// True if, by the lateness bound, an order of a lost send may still appear.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.attempts.iter().any(|attempt| matches!(attempt.state, AttemptState::Doubt { settled: None, .. }))
    }

    /// True if a send of it that may have placed an order left in this session.
    pub(crate) fn was_sent_in(&self, session: Session) -> bool {
        let left = |attempt: &Attempt| attempt.standing().or(attempt.refused()).is_some();
        self.attempts.iter().any(|attempt| left(attempt) && attempt.session == session)
    }

    /// True while its order is searched for, or was found absent and not sent again yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Doubt | Phase::Granted)
    }

    pub(crate) fn finding(&self) -> Option<&Finding> {
        match &self.phase {
            Phase::Finished(finding) => Some(finding),
            _ => None,
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
        let Some(Finding::Unresolved(unresolved)) = self.finding() else { return false };
        unresolved.candidates.iter().any(|candidate| candidate == order_id)
    }

    /// Returns why it must never be sent again, the gravest reason first.
    pub(crate) fn never(&self) -> Option<Never> {
        let reasons = || {
            self.attempts.iter().filter_map(|attempt| match attempt.state {
                AttemptState::Doubt { never, .. } => never,
                _ => None,
            })
        };
        reasons().find(|never| *never == Never::Success).or_else(|| reasons().next())
    }
}
