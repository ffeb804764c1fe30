use std::{error::Error, fmt, io, sync::Arc};

use steadfast_call::{causes, one_line};

use crate::error::StoreError;

/// The orders of an account cannot be had from the store.
#[derive(Clone)]
#[non_exhaustive]
pub enum OrdersError {
    /// The store cannot be used.
    Store(StoreError),
    /// The store has no journal of the account's orders, or may lack some of it: it is new, was emptied, or was restarted
    /// while no process owned the orders.
    ///
    /// An order that it lacks would be sent again under its name. So compare the service's order list with what was placed today,
    /// and only then [accept](crate::Shared::accept_orders) the journal as it is, by this mark.
    MayLackEntries {
        /// Host and port of the store.
        store: Arc<str>,
        /// Stands for this loss. Another one has another mark.
        mark: Arc<str>,
    },
    /// An entry of the journal is not understood: another version wrote it.
    UnknownEntry {
        /// Host and port of the store.
        store: Arc<str>,
        /// The entry in its stream.
        entry: Arc<str>,
    },
    /// The thread that writes the journal cannot be started, or has ended.
    NoThread(Arc<io::Error>),
}

impl fmt::Display for OrdersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        match self {
            Self::Store(error) => error.fmt(f),
            Self::MayLackEntries { store, mark } => write!(
                f,
                "store {store} may lack some of the orders' journal: compare the order list with what was placed, then \
                 accept mark {mark}"
            ),
            Self::UnknownEntry { store, entry } => {
                write!(f, "entry {entry} of the orders' journal in store {store} is not understood")
            }
            Self::NoThread(_) => f.write_str("thread that writes the orders' journal does not run"),
        }
    }
}

steadfast_call::debug_in_one_line!(OrdersError);

impl Error for OrdersError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoThread(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StoreError> for OrdersError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Orders do not leave again after a [resume](crate::Shared::resume_orders), or may not.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeError {
    /// The store cannot be used. It may have been told all the same; the halt that the resume was for may end late, and none
    /// that came after it.
    Store(StoreError),
    /// The halt has ended, and a newer one holds: another process has halted meanwhile, or knew of a halt that the store had
    /// lost. Another resume ends it.
    HaltedAgain {
        /// The number of the newer halt, which grows with each.
        halt: u64,
    },
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::HaltedAgain { halt } => write!(f, "orders were halted again meanwhile, by halt {halt}"),
        }
    }
}

steadfast_call::debug_in_one_line!(ResumeError);

impl Error for ResumeError {}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
