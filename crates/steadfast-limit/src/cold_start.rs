use std::path::PathBuf;

/// What a limiter takes for spent when it starts.
///
/// The gateway's windows outlive a program. One that starts with empty windows while the gateway's are full is
/// refused for up to a minute.
///
/// A store that several machines share is no variant of this version: there is none yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColdStart {
    /// Goes by where each token came from, because the zones that matter are counted per token: see
    /// [`ZoneLimiter::begin`](crate::ZoneLimiter::begin). Until that is said, windows are empty.
    #[default]
    Auto,
    /// Nothing: the token is new, or nobody has used it for a minute.
    Empty,
    /// Everything, except for cancels and verifications, until the windows have gone by: for who shares a token
    /// with a program that has just stopped.
    Pessimistic,
    /// What an earlier process wrote to this file, which this one carries on.
    ///
    /// The file belongs to one process at a time, beside it stands a lock that says so. Its readers and writers are
    /// this user's only, and no secret is in it. It is replaced as a whole, five times a second at most while
    /// requests are sent and not at all while none are, by a task of its own; nothing waits for the disk.
    ///
    /// 1. A process that ended in order left everything it had sent. One that was killed may have sent more than
    ///    its last record says: as much as the tightest window lets through in a second. That much is added, in
    ///    every key, as if it had been sent by the last moment; cancels and verifications do not wait for it.
    /// 2. A file that is damaged, or that another version wrote, says that something was spent but not what:
    ///    the start is [pessimistic](Self::Pessimistic), and [`Event::JournalDamaged`](crate::Event::JournalDamaged)
    ///    says so. Neither a file nor a lock says that this is the first start: it is empty.
    /// 3. What has gone by since is told by the clock that runs from the machine's start, which nobody sets, if the machine
    ///    still runs and has one (Linux). Otherwise by the wall clock: one that went back says that no time has passed, and
    ///    one that was set forward by up to a second makes no difference; a leap of more than that cannot be found out.
    /// 4. A record that cannot be written, on a full disk for one, makes the file say that it is out of date: one byte is
    ///    overwritten in place, or the file is removed. The next start is then [pessimistic](Self::Pessimistic), and
    ///    [`Event::JournalFailed`](crate::Event::JournalFailed) says so now. So is a start that finds the lock of a journal
    ///    and no journal.
    /// 5. A link, a file of another user, or one that others have access to, is an error, for the journal and its lock.
    Journal(PathBuf),
}

/// Where a token came from, for [`ZoneLimiter::begin`](crate::ZoneLimiter::begin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenOrigin {
    /// This process logged in for it: nobody else has used it.
    Minted,
    /// An earlier process logged in for it and kept it in a store.
    Stored,
    /// It was handed in, and nobody says who else has used it.
    Given,
}
