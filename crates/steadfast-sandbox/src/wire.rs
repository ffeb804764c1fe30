//! Answers as bytes: what a server writes that is no HTTP, too late, too little or too much, and the connection's end.
//!
//! A [`Script`] is data. [`serve_answers`] plays it on any [`Line`]: a TCP stream, or a pipe in memory.

mod bytes;
mod connection;
mod greeting;
mod line;
mod play;
mod process;

use std::{fmt, time::Duration};

use ::bytes::Bytes;
use http::Response;

use crate::arrival::Spoiled;

use self::play::play;
pub(crate) use self::{
    connection::{HEAD_TIMEOUT, Hub, converse},
    greeting::serve,
};
pub use self::{
    connection::{serve_answers, serve_patiently},
    line::Line,
};

/// After so long a server that does not answer ends the connection; no client waits that long.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(600);

/// How long a client may take to send a request's body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a gateway does about a request.
#[derive(Debug)]
pub enum Answer<B> {
    /// It answers as HTTP does.
    Response(Response<B>),
    /// It resets the connection.
    Reset,
    /// It writes these bytes.
    Script(Script),
}

/// What is written in place of an answer, when, and how the connection goes on.
#[derive(Clone)]
pub struct Script {
    steps: Vec<Step>,
    end: End,
}

#[derive(Clone)]
enum Step {
    Send(Bytes),
    /// Byte by byte, with a pause before each.
    Trickle(Bytes, Duration),
}

/// How a connection goes on behind a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It serves the next request.
    Keep,
    /// It ends as connections end.
    Close,
    /// The server's half ends; it goes on reading.
    HalfClose,
    /// Nothing more comes.
    Hang,
    /// It is reset.
    Reset,
    /// When the next request comes, the same is sent once more; then the request is served.
    SendAgain,
    /// It ends when the next request comes, which is not read.
    CloseOnRequest,
    /// It is reset, and every other connection of the server with it.
    ResetAll,
}

impl Script {
    fn new(steps: impl Into<Vec<Step>>, end: End) -> Self {
        Self { steps: steps.into(), end }
    }

    fn sends(bytes: impl Into<Bytes>, end: End) -> Self {
        Self::new([Step::Send(bytes.into())], end)
    }

    pub(crate) fn of(spoiled: Spoiled, wall: Duration) -> Self {
        bytes::script(spoiled, wall)
    }
}

/// The bytes may hold a token.
impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("end", &self.end).finish_non_exhaustive()
    }
}
