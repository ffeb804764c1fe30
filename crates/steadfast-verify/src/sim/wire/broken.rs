use std::{error::Error, fmt};

/// The end of a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// No connection was made; nothing left.
    Refused,
    /// The body ended in an error before any of it left.
    Withheld,
    /// The connection was reset.
    Reset,
    /// The connection broke in the middle of the answer's body.
    MidBody,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::Withheld => "request withheld",
            Self::Reset => "connection reset",
            Self::MidBody => "connection broken in the middle of the body",
        })
    }
}

impl Error for Broken {}
