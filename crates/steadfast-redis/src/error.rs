use std::{error::Error, fmt, sync::Arc, time::Duration};

/// The store cannot be used.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The address is not one of a Redis or Valkey server, or of sentinels.
    InvalidAddress,
    /// The certificate authorities that were given for it cannot be used.
    Certificates {
        /// The reason.
        why: &'static str,
    },
    /// No connection, or no answer in time. Nothing is granted meanwhile.
    Unreachable {
        /// Host and port of the store.
        store: Arc<str>,
        /// The reason, without a secret.
        why: Arc<str>,
    },
    /// The store does not accept the password.
    PasswordRefused {
        /// Host and port of the store.
        store: Arc<str>,
    },
    /// The store does not keep what is counted in it.
    Unfit {
        /// Host and port of the store.
        store: Arc<str>,
        /// The reason.
        why: Unfit,
    },
}

/// Why a server cannot keep a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// Redis before 7.0 and Valkey before 7.2 hand scripts on to replicas, which hides a promotion.
    TooOld {
        /// The server's version.
        version: String,
    },
    /// It may forget keys when its memory is full.
    Evicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// It is a replica.
    IsReplica,
    /// It has replicas or sentinels, and answers before a replica has what it was told (`min-replicas-to-write` is 0).
    ForgetsAtPromotion,
    /// It is on another machine, and a token would be sent to it unsealed.
    NeedsSeal,
}

/// No permit was granted, and nothing is spent.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotGranted {
    /// The windows have no room before the deadline.
    WouldMissDeadline {
        /// How long from now until they have, at the earliest.
        earliest: Duration,
    },
    /// The store could not be asked for as long as a request waits for it.
    Store(StoreError),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidAddress => f.write_str("store's address is not that of a Redis or Valkey server"),
            Self::Certificates { why } => {
                write!(f, "certificate authorities of the store cannot be used: {why}")
            }
            Self::Unreachable { store, why } => write!(f, "store {store} cannot be reached: {why}"),
            Self::PasswordRefused { store } => write!(f, "store {store} does not accept the password"),
            Self::Unfit { store, why: Unfit::NeedsSeal } => {
                write!(f, "store {store} cannot keep a token: {}", Unfit::NeedsSeal)
            }
            Self::Unfit { store, why } => write!(f, "store {store} cannot keep a quota: {why}"),
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld { version } => {
                write!(f, "its version is {version}, Redis 7.0 or Valkey 7.2 is needed")
            }
            Self::Evicts { policy } => {
                write!(f, "its maxmemory-policy is {policy}, only noeviction forgets nothing")
            }
            Self::IsReplica => f.write_str("it is a replica"),
            Self::ForgetsAtPromotion => f.write_str(
                "its min-replicas-to-write is 0, so a replica that takes its place may have forgotten",
            ),
            Self::NeedsSeal => f.write_str("it is on another machine, so a token needs a seal key"),
        }
    }
}

impl fmt::Display for NotGranted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldMissDeadline { earliest } => {
                write!(f, "shared windows have room only after the deadline, in {earliest:?} at the earliest")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

steadfast_call::debug_in_one_line!(StoreError);
steadfast_call::debug_in_one_line!(NotGranted);

impl Error for StoreError {}
impl Error for NotGranted {}
