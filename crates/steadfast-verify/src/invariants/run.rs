//! The record of a finished run.

use std::{collections::HashSet, time::Duration};

use steadfast_dedup::{AccountMode, Event, OrdersScope, Settings, Step};

use super::history::History;

/// Everything that the checkers examine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The tracker's settings.
    pub settings: Settings,
    /// The lateness bound for its absences.
    pub lateness: Duration,
    /// How long the gateway may work on a request that the client has lost.
    pub gateway_timeout: Duration,
    /// The shortest time between two reads.
    pub spacing: Duration,
    /// How long an order may be in doubt.
    pub budget: Duration,
    /// Whether the run ended with nothing in flight or in doubt.
    pub quiet: bool,
    /// Whether no other program trades on the account.
    pub exclusive: bool,
    /// Whether a list holds its session's orders only.
    pub session_scope: bool,
    /// The history of each account.
    pub accounts: Vec<Vec<Step>>,
    /// The ground truth: the orders that were posted, by the hidden names of their callers.
    pub posts: Vec<String>,
    /// The orders that the gateway has in the end.
    pub orders: Vec<Order>,
    /// Every method that reached the gateway.
    pub methods: Vec<String>,
    /// The results of callers with an order in doubt.
    pub answers: Vec<Answer>,
    /// Other traffic: what the service below returned, and what the caller got.
    pub passed: Vec<(Vec<u8>, Vec<u8>)>,
}

/// An order at the gateway.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its identifier.
    pub id: String,
    /// The hidden name of its caller, or `foreign`.
    pub owner: String,
}

/// The result of a call with an order in doubt.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Whether it is unresolved.
    pub unresolved: bool,
    /// Whether it forbids any repeat.
    pub do_not_retry: bool,
    /// Whether its outcome is unknown.
    pub unknown: bool,
    /// Whether it includes the answer or error that left it in doubt.
    pub has_original: bool,
}

impl Run {
    /// Creates the run of a tracker with these settings and `in_doubt` orders still in doubt. Callers with a gateway add
    /// its data.
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
            // Open sends ended with the process.
            Event::Restarted => open.clear(),
            _ => {}
        }
    }
    open.is_empty()
}
