//! An exhaustive model over the real [`OrderProtocol`](crate::OrderProtocol): every interleaving of sends, answers, late
//! orders, settling, crashes and two-step reads, for a few intents on one key.
//!
//! The world decides what happens; the protocol is driven exactly as the layers and the journal drive it. A state has
//! two parts: what the service did, and what the protocol knows. States that differ only in the names of their
//! positions are the same.
//!
//! It leaves out: more than one key, more than one login, a clock (there is a bound instead), and lists that show
//! less than all orders up to a moment. Records show what all orders have in common, and no field in which the two
//! kinds differ. Scenarios and random sessions test the rest.

mod explore;
mod rules;
mod safety;
mod state;
mod world;

use std::time::Duration;

use crate::{protocol::rules::Rules, settings::policy::KeyPolicy};

/// The size of the model, and what may go wrong in it.
#[derive(Clone, Copy, Debug)]
struct Model {
    intents: u64,
    attempts: u32,
    foreign: usize,
    reads: usize,
    /// Whether orders appear before their attempt settles.
    bounded: bool,
    refusals: bool,
    /// Whether the service may also deny what it placed.
    refuted: bool,
    crashes: u32,
    /// Whether a crash may lose entries after the last send was begun.
    lossy: bool,
    key_policy: KeyPolicy,
    lists: Lists,
    /// Whether the earlier session's list can be read, until its token is refused.
    own: bool,
    /// Whether the intents alternate in a field that no record shows.
    mixed: bool,
    /// Whether there are answers that forbid a resend: successes without an id, and some that say `error`.
    nevers: bool,
    /// Whether the account is shared, so that no order is claimed by its likeness.
    shared: bool,
    /// The form in which records show the tags of orders, if orders carry any.
    echo: Option<Echo>,
    rules: Rules,
}

/// The form in which records show the tags of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Nothing,
    Whole,
    /// The first characters.
    Cut,
    /// All of it, for every second order.
    Some,
    /// All of it, but the tag of the order before for every second order.
    Copied,
}

/// Which orders lists show, where the session may be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// The session is not renewed.
    OneSession,
    /// It may be renewed once, and every list shows the orders of its session.
    OfTheSession,
    /// It may be renewed once, and every list shows all orders, although the settings do not say so.
    OfTheAccount,
}

const SMALL: Model = Model {
    intents: 2,
    attempts: 2,
    foreign: 0,
    reads: 1,
    bounded: true,
    refusals: false,
    refuted: false,
    crashes: 0,
    lossy: false,
    key_policy: KeyPolicy::Concurrent,
    lists: Lists::OneSession,
    own: false,
    mixed: false,
    nevers: false,
    shared: false,
    echo: None,
    rules: Rules { negatives: 1, refusal_lag: Some(Duration::ZERO), ..Rules::PROTOCOL },
};

/// The service's handling of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Served {
    Pending,
    Applied(usize),
    Dropped,
}

/// The next event; an attempt is named by its intent and its index.
#[derive(Clone, Copy, Debug)]
enum Move {
    Send(u64),
    Resend(u64),
    Leave(u64),
    Apply(u64, usize),
    Drop(u64, usize),
    Acknowledge(u64, usize),
    Doubt(u64, usize),
    /// A 200 that says `error`, true or not.
    Deny(u64, usize),
    /// A 200 without an id; the service sends none for an order that it dropped.
    Mumble(u64, usize),
    Refuse(u64, usize),
    Limit(u64, usize),
    Settle(u64, usize),
    Foreign,
    Read,
    Evaluate(usize),
    List(usize),
    /// A login: sends and reads that start later are of the new session, whose list is read at once.
    Renew,
    /// A read with the token of the earlier session.
    ReadOwn,
    /// The refusal of that token.
    Lose,
    /// A crash that so many records of the journal survive.
    Crash(usize),
}

/// The content of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Begin(u64, usize),
    /// A list showed the orders up to this one.
    Seen(usize),
    Acknowledged(u64, usize, usize),
    Refused(u64, usize),
    Limited(u64, usize),
    Found(u64, usize),
}

#[derive(Default, Debug)]
struct Found {
    states: usize,
    /// Whether there are more states than the limit.
    cut: bool,
    duplicates: usize,
    double_claims: usize,
    /// Callers that were told of an order that was not what they had asked for.
    wrong_claims: usize,
    undetected: usize,
    /// Quiescent states with a duplicate.
    flagged: usize,
    lost: usize,
    /// Orders that two callers were told of, one before a crash and one after it.
    swapped: usize,
    trace: Option<String>,
}

fn at(n: u64) -> usize {
    usize::try_from(n).unwrap()
}
