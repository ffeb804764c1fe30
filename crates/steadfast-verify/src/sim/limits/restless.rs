use std::{error::Error, fmt};

use crate::sim::network::Nanos;

/// The error for a client that asked to be woken in the past, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Restless {
    pub(super) row: String,
    pub(super) at: Nanos,
    pub(super) alarm: Nanos,
}

impl fmt::Display for Restless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: at {} ns the client still wants to be woken at {} ns", self.row, self.at, self.alarm)
    }
}

impl Error for Restless {}
