/// The rules, each of which can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// A standby does not wait for a lease to stand still.
    TakesAtOnce,
    /// An entry makes its process the owner for longer, as a renewal does.
    EntryRenews,
    /// The time of an owner is counted from the answer to its renewal.
    CountsFromTheAnswer,
    /// The fence is the number alone.
    NumberAlone,
    /// Entries are appended without a fence.
    NoFence,
    /// The send does not ask at the body's first poll.
    SendsUnasked,
    /// A store that forgot is taken without a person's word.
    TakesWhatMayLack,
    /// After a person's word no process waits for an owner that has not heard.
    AcceptsAtOnce,
    /// After a person's word the lease is as before.
    AcceptKeepsLease,
    /// An owner whose time is over renews in another run of the store.
    RenewsInAnotherRun,
    /// The store counts the renewals, and forgets some.
    StoreCounts,
    /// A halt returns before the owner has heard of it.
    HaltsAtOnce,
    /// The store says of an owner that renews that it has heard of every halt.
    HeardUnheard,
    /// A halt does not wait for an owner that is silent.
    HaltLeavesSilent,
    /// A resume ends whatever halt holds.
    ResumeNamesNone,
    /// A halt of a halted switch is the one that holds already.
    HaltJoins,
}

impl Mistake {
    pub(super) fn courses(self) -> Courses {
        match self {
            Self::HaltsAtOnce | Self::HeardUnheard | Self::HaltLeavesSilent => Courses::Halt,
            Self::ResumeNamesNone | Self::HaltJoins => Courses::LateResume,
            _ => Courses::Owners,
        }
    }
}

/// The subject of the courses, which bounds their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Courses {
    Owners,
    /// A person halts: no person accepts and no store is emptied, so that there are fewer.
    Halt,
    /// The same while a halt holds that the person wanted to end: that call has failed, and may reach the store late.
    LateResume,
}
