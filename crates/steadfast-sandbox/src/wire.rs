//! Answers as bytes: what a server writes that is not HTTP, too late, too little or too much, and how the connection
//! ends.
//!
//! A [`Script`] is data. [`serve_answers`] plays it on any [`Line`]: a TCP stream, or a pipe in memory.

pub(crate) mod body;
pub(crate) mod broken_off;
mod bytes;
pub(crate) mod connection;
pub(crate) mod corrupt;
mod line;
pub(crate) mod page;
pub(crate) mod patience;
mod play;
mod process;
pub(crate) mod scrips;
pub(crate) mod seats;

use std::{fmt, time::Duration};

use ::bytes::Bytes;
use http::Response;

use crate::wire::page::Corrupted;

pub(crate) use self::connection::{Hub, converse};
use self::play::play;
pub use self::{
    body::{Body, NoAnswer},
    broken_off::BrokenOff,
    connection::{serve_answers, serve_patiently},
    line::Line,
};

/// A gateway's reaction to a request.
#[derive(Debug)]
pub enum Answer<B> {
    /// It answers as HTTP does.
    Response(Response<B>),
    /// It resets the connection.
    Reset,
    /// It writes these bytes.
    Script(Script),
}

/// The bytes written in place of an answer, their timing, and how the connection goes on.
#[derive(Clone)]
pub struct Script {
    steps: Vec<Step>,
    end: End,
}

#[derive(Clone)]
pub(crate) enum Step {
    Send(Bytes),
    /// Byte by byte, with a pause before each.
    Trickle(Bytes, Duration),
}

/// How a connection goes on after a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It serves the next request.
    Keep,
    /// It ends in an orderly way.
    Close,
    /// The server's half ends, and the server goes on reading.
    HalfClose,
    /// Nothing more is sent.
    Hang,
    /// It is reset.
    Reset,
    /// When the next request comes, the same bytes are sent again; then the request is served.
    SendAgain,
    /// It ends when the next request comes, which is not read.
    CloseOnRequest,
    /// It is reset, and every other connection of the server with it.
    ResetAll,
}

impl Script {
    pub(crate) fn new(steps: impl Into<Vec<Step>>, end: End) -> Self {
        Self { steps: steps.into(), end }
    }

    pub(crate) fn sends(bytes: impl Into<Bytes>, end: End) -> Self {
        Self::new([Step::Send(bytes.into())], end)
    }

    pub(crate) fn of(corrupted: Corrupted, wall: Duration) -> Self {
        bytes::script(corrupted, wall)
    }
}

/// The bytes may hold a token.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("end", &self.end).finish_non_exhaustive()
    }
}
