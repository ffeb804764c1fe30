use std::path::PathBuf;

/// How much counts as spent when a limiter starts.
///
/// The gateway's windows outlive a program. One that starts with empty windows while the gateway's are full is
/// refused for up to a minute.
///
/// This version has no variant for a store shared by several machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColdStart {
    /// Decides by the origin of each token, because the zones that matter are counted per token: see
    /// [`ZoneLimiter::token_is`](crate::ZoneLimiter::token_is). Until the origin is given, windows are empty.
    #[default]
    Auto,
    /// Nothing: the token is new, or has been unused for a minute.
    Empty,
    /// Everything, except for cancels and verifications, until the windows have passed. For a token shared with a
    /// program that has just stopped.
    Pessimistic,
    /// The record that an earlier process wrote to this file, which this one continues.
    ///
    /// The file belongs to one process at a time; a lock file beside it ensures that. Only this user can read or
    /// write it, and it contains no secret. A task of its own replaces it as a whole, at most five times a second
    /// while requests are sent and never while none are. No request waits for the disk.
    ///
    /// 1. A process that ended in order has recorded everything it sent. A killed one may have sent more than its
    ///    last record says: as much as the tightest window admits in a second. That much is added to every key, as
    ///    if sent at the last moment. Cancels and verifications do not wait for it.
    /// 2. If the file is damaged, or of another version, the spent slots are unknown and the start is
    ///    [pessimistic](Self::Pessimistic); [`Event::JournalDamaged`](crate::Event::JournalDamaged) reports it. If
    ///    neither file nor lock exists, this is the first start, and it is empty.
    ///
    ///    What a start assumes holds for the next processes too, until the windows have passed, also for keys that
    ///    this process does not use.
    /// 3. If the machine still runs and has a boot clock (Linux), that clock gives the time since. Otherwise the
    ///    wall clock does: if it went back, no time counts as passed; a jump forward of up to a second makes no
    ///    difference; a longer one cannot be detected.
    /// 4. If a record cannot be written, for example on a full disk, the file is marked as out of date: one byte is
    ///    overwritten in place, or the file is removed. [`Event::JournalFailed`](crate::Event::JournalFailed)
    ///    reports it, and the next start is [pessimistic](Self::Pessimistic). So is a start that finds a lock
    ///    without a journal. At the start, only a full disk is no error.
    /// 5. A link, a file of another user, or a file that others can access is an error, both for the journal and for
    ///    its lock.
    Journal(PathBuf),
}

/// The origin of a token, for [`ZoneLimiter::token_is`](crate::ZoneLimiter::token_is).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenOrigin {
    /// This process logged in for it, so it is unused.
    Minted,
    /// An earlier process logged in for it and kept it in a store.
    Stored,
    /// It was handed in; its use by others is unknown.
    Given,
}
