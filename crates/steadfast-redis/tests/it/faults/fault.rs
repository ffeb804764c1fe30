//! The faults, and what each does to the orders and their journal.

use Fault::*;

/// Names each fault once, for the enum and for [`ALL`].
macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Fault {
            $($(#[$doc])* $fault,)*
        }

        pub(super) const ALL: &[Fault] = &[$(Fault::$fault),*];
    };
}

faults! {
    OwnerKilled,
    /// For longer than its lease, and then it goes on.
    OwnerStopped,
    /// At any byte, again and again.
    ConnectionsCut,
    OwnerKilledAndConnectionsCut,
    StoreStopped,
    StoreSlow,
    /// The store asks for another password, for a while.
    PasswordChanged,
    /// It has all that it was told.
    StoreRestarted,
    /// It has nothing.
    StoreEmptied,
    StoreRestartedEmpty,
    OwnerKilledAndStoreEmptied,
    /// A replica that lacks the last writes takes the store's place.
    StaleReplicaPromoted,
    OwnerKilledAndStaleReplicaPromoted,
    /// The server dies, and sentinels put a replica in its place.
    FailedOver,
    OwnerKilledAndFailedOver,
}

impl Fault {
    pub(super) fn kills(self) -> bool {
        matches!(
            self,
            OwnerKilled
                | OwnerKilledAndConnectionsCut
                | OwnerKilledAndStoreEmptied
                | OwnerKilledAndStaleReplicaPromoted
                | OwnerKilledAndFailedOver
        )
    }

    /// True if the journal lacks orders that were sent. A person accepts it then, and gives no name again.
    pub(super) fn loses(self) -> bool {
        matches!(
            self,
            StoreEmptied
                | StoreRestartedEmpty
                | OwnerKilledAndStoreEmptied
                | StaleReplicaPromoted
                | OwnerKilledAndStaleReplicaPromoted
        )
    }

    pub(super) fn fails_over(self) -> bool {
        matches!(self, FailedOver | OwnerKilledAndFailedOver)
    }

    /// True if the windows count as full after it.
    pub(super) fn forgets(self) -> bool {
        self.loses() || self.fails_over() || self == StoreRestarted
    }

    pub(super) fn promotes(self) -> bool {
        matches!(self, StaleReplicaPromoted | OwnerKilledAndStaleReplicaPromoted)
    }

    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            StoreSlow => &["--enable-debug-command", "yes"],
            StoreRestarted => &["--appendonly", "yes", "--appendfsync", "always"],
            _ if self.promotes() || self.fails_over() => &REPLICATED,
            _ => &[],
        }
    }
}

/// The settings of a server that has replicas, and of each replica.
pub(crate) const REPLICATED: [&str; 6] =
    ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "10", "--repl-diskless-sync-delay", "0"];
