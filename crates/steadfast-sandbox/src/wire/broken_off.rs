use std::{error::Error, fmt};

/// The connection broke in the middle of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOff;

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection broken in the middle of the body")
    }
}

impl Error for BrokenOff {}
