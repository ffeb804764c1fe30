use crate::orders::ledger::{Fence, Lease};

/// The rules, each of which can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    TakesAtOnce,
    NumberAlone,
    NoFence,
    SendsUnasked,
    TakesWhatMayLack,
    RenewsInAnotherRun,
    /// An entry counts as written before a replica has it.
    WaitsForNoReplica,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    Take(Option<Lease>),
    Renew(Option<(Fence, u64)>, RenewalFacts),
    Append(Option<(Fence, u64)>, String),
}

/// Number, whether it still owns.
pub(super) type RenewalFacts = (u64, bool);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    Taken(Option<(u64, u64, Vec<String>)>, Option<Lease>),
    Renewed(Said),
    Appended(Said),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    Done,
    NotOwner,
    Lost,
}

/// Where a happening belongs: a process, its life, and its call.
pub(super) type Of = (usize, u64, u64);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    /// The process makes its next call.
    Acts(Of),
    /// A call is at the server, or would be: it was sent to that run.
    Arrives(Of, Call, u64),
    Answered(Of, Answer),
    GivesUp(Of),
    /// The transport polls the body of an order.
    Polls(Of, String),
    Stops(usize),
    Dies(usize),
    /// The server starts again, perhaps without its last writes.
    Restarts,
    Empties,
    /// A replica takes the server's place, which goes on for those who still reach it.
    Promotes,
    Accepts(String),
}
