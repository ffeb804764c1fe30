use std::{error::Error, fmt};

use crate::{
    faults::{Fault, UnknownFault},
    gateway::spec_reading::InvalidAxis,
};

/// A fault that cannot be injected as asked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidFault {
    /// There is no such fault.
    Name(UnknownFault),
    /// The rate is not between 0 and 1.
    Rate(Fault),
    /// `nth` counts from 1.
    Nth(Fault),
    /// `attempt` counts from 1.
    Attempt(Fault),
    /// `late_by_ms` for a fault that makes no order late.
    NotLate(Fault),
    /// A rate beside a field that selects exact requests.
    BesideRate(Fault, &'static str),
    /// `at_byte` for a fault that does not strike at a byte.
    NoByte(Fault),
    /// There is no such endpoint.
    Endpoint(Fault),
    /// A script's interpretation has no such axis or value.
    Axis(InvalidAxis),
    /// The script is not TOML of the required form.
    Script(String),
}

impl fmt::Display for InvalidFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Rate(fault) => write!(f, "rate of {fault} is not between 0 and 1"),
            Self::Nth(fault) => write!(f, "nth of {fault} counts from 1"),
            Self::Attempt(fault) => write!(f, "attempt of {fault} counts from 1"),
            Self::NotLate(fault) => write!(f, "late_by_ms of {fault} means nothing: it makes no order late"),
            Self::NoByte(fault) => write!(f, "at_byte of {fault} means nothing: it strikes at no byte"),
            Self::Axis(error) => write!(f, "interpretation: {error}"),
            Self::BesideRate(fault, field) => write!(f, "{field} of {fault} cannot stand beside rate"),
            Self::Endpoint(fault) => write!(f, "endpoint of {fault} is unknown"),
            Self::Script(message) => write!(f, "fault script: {message}"),
        }
    }
}

impl Error for InvalidFault {}
