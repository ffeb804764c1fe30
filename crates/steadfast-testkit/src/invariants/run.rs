//! What a run left behind.

use std::{collections::HashSet, time::Duration};

use steadfast_dedup::{AccountMode, Event, OrdersScope, Settings, Step};

use super::history::History;

/// Everything that the checkers look at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// What the ledger was told to assume.
    pub settings: Settings,
    /// The bound on lateness that its absences are held against.
    pub lateness: Duration,
    /// How long the gateway may work on what the client has lost sight of.
    pub gateway_timeout: Duration,
    /// The shortest time between two reads.
    pub spacing: Duration,
    /// How long an order may be in doubt.
    pub budget: Duration,
    /// Whether the run ended with nothing in flight or in doubt.
    pub quiet: bool,
    /// Whether nobody else trades on the account.
    pub exclusive: bool,
    /// Whether a list holds its session's orders only.
    pub session_scope: bool,
    /// The history of each account.
    pub accounts: Vec<Vec<Step>>,
    /// The truth: what was posted, by whose hidden name.
    pub posts: Vec<String>,
    /// The orders that the gateway has in the end.
    pub orders: Vec<Order>,
    /// Every method that reached the gateway.
    pub methods: Vec<String>,
    /// What callers were told.
    pub answers: Vec<Answer>,
    /// Other traffic: what the service below gave, and what the caller got.
    pub passed: Vec<(Vec<u8>, Vec<u8>)>,
}

/// One order of the gateway's.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its identifier.
    pub id: String,
    /// The hidden name of who wanted it, or `foreign`.
    pub owner: String,
}

/// What a caller was told of an order in doubt.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// That nobody knows.
    pub unresolved: bool,
    /// That nobody may send it again.
    pub do_not_retry: bool,
    /// That its outcome is not known.
    pub unknown: bool,
    /// Whether the answer or error that left it in doubt is there.
    pub has_original: bool,
}

impl Run {
    /// The histories of a ledger with these settings, of which so many orders are still in doubt. What a gateway knows
    /// is added by whoever asks one.
    #[must_use]
    pub fn new(settings: &Settings, accounts: Vec<Vec<Step>>, in_doubt: usize) -> Self {
        Self {
            settings: settings.clone(),
            lateness: settings.lateness_bound(),
            gateway_timeout: settings.gateway_bound(),
            spacing: settings.spacing(),
            budget: settings.verification_bound(),
            quiet: accounts.iter().all(|steps| is_quiet(steps)) && in_doubt == 0,
            exclusive: settings.mode() == AccountMode::Exclusive,
            session_scope: settings.scope() == OrdersScope::Session,
            accounts,
            posts: Vec::new(),
            orders: Vec::new(),
            methods: Vec::new(),
            answers: Vec::new(),
            passed: Vec::new(),
        }
    }

    pub(crate) fn histories(&self) -> impl Iterator<Item = History<'_>> {
        self.accounts.iter().map(|steps| History::of(steps))
    }
}

/// True if every send of a history was closed.
fn is_quiet(steps: &[Step]) -> bool {
    let mut open = HashSet::new();
    for step in steps {
        match &step.event {
            Event::Sent(attempt) => drop(open.insert(*attempt)),
            Event::Closed { attempt, .. } => drop(open.remove(attempt)),
            // What was under way ended with the process.
            Event::Restarted => open.clear(),
            _ => {}
        }
    }
    open.is_empty()
}
