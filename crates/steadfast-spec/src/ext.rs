//! Typed request and response extensions that several layers read.
//!
//! Layers do not know each other; they meet here. A caller may set the ones marked *by the caller* on a request.
//!
//! Those that every call has are read by [`Stamp::of`], several at once by [`Stamped`], and set by [`Stamp::put`]: together
//! they are one entry of the extensions. The others are entries of their own.
//!
//! Instants are the standard library's because this crate knows no runtime; services convert with
//! `tokio::time::Instant::from_std`, which keeps paused time paused.

#![expect(
    clippy::disallowed_types,
    reason = "plain data for services, which convert to tokio's Instant; nothing here reads a clock"
)]

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
    time::Instant,
};

pub use crate::{
    Fate, Lane, Outcome, Place,
    sends::{ResendCount, Sends},
    stamps::{Stamp, Stamped},
};

/// What is known of a request from its method and path, shared by every send of it. Set by the route layer.
pub type Route = Arc<crate::Route>;

/// The request must have left by then, or it is not sent at all. Set by the caller or by the deadline layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendBy(pub Instant);

/// The caller wants an answer by then. Set by the caller or by the deadline layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub Instant);

/// When a call with an order or a change of one began, by every clock: a suspended machine's time counts for its
/// [`SendBy`] and [`Deadline`], whose instants are those of a clock that may have stood still. Set by the dedup layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began(pub crate::Moment);

/// Which token a request was sent with; grows by one with each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenGeneration(pub u64);

/// What one physical send leaves behind: when its body was first polled, and how its connection can be ended.
///
/// Until the first poll nothing has left, and after it anything may have. An answer that may leave a request in doubt
/// carries its stamp, put there by the layer that ends sends: by it the connection is ended.
///
/// # Clone
///
/// Clones share one stamp: the half that stays with the request writes it, the other half reads it.
#[derive(Clone, Debug, Default)]
pub struct SendStamp(Arc<Sent>);

#[derive(Debug, Default)]
struct Sent {
    left: OnceLock<Instant>,
    connection: OnceLock<Arc<dyn Connection>>,
}

/// The connection that a request was sent over, as far as layers need it: they can end it.
pub trait Connection: fmt::Debug + Send + Sync {
    /// Ends the connection abortively, and returns the instant since which nothing more of it can reach the service.
    ///
    /// The descriptor is closed when this returns, and the kernel drops what it had still to send. Ended again, it
    /// returns the first instant. `None`: the transport cannot promise that.
    fn abort(&self) -> Option<Instant>;
}

impl SendStamp {
    /// A stamp not yet written.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the send at `now`; only the first call counts.
    pub fn stamp(&self, now: Instant) {
        // A second poll of the same body is the same send.
        let _ = self.0.left.set(now);
    }

    /// The instant of the send; `None` proves that nothing has left.
    #[must_use]
    pub fn get(&self) -> Option<Instant> {
        self.0.left.get().copied()
    }

    /// Records the connection that the request goes over; only the first call counts. Called by the transport.
    pub fn set_connection(&self, connection: Arc<dyn Connection>) {
        // One physical send has one connection.
        let _ = self.0.connection.set(connection);
    }

    /// Ends the send's connection abortively, and returns the instant since which nothing more of the request can
    /// reach the service; `None` where the transport cannot promise that.
    #[must_use]
    pub fn abort(&self) -> Option<Instant> {
        self.0.connection.get()?.abort()
    }
}

/// The caller's own name for an order: two calls with one `IntentId` place at most one order between them.
/// Set by the caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(Arc<str>);

impl IntentId {
    /// An intent named `name`; an empty name is none.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A stable, public name of the credentials that a request is sent with; never a secret.
///
/// Rate-limit windows per key and token, and everything that is known of orders, are kept per account. A request
/// without it belongs to the one unnamed account, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(Arc<str>);

impl Account {
    /// An account named `name`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the outer half of a layer hands to its inner half, past layers that cannot name it but may send the request again.
///
/// # Clone
///
/// Clones are the same thing.
#[derive(Clone)]
pub struct Ticket(Arc<dyn Any + Send + Sync>);

impl Ticket {
    /// A ticket that is `what`.
    #[must_use]
    pub fn new<T: Send + Sync + 'static>(what: Arc<T>) -> Self {
        Self(what)
    }

    /// What it is, for whoever can name it.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

// Nobody knows what is in it.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

/// Marks an answer that nothing further out may repeat: either the repeats are spent, or repeating is not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoNotRetry;

/// Marks an answer of 200 to a place-order whose envelope says `error` (§1).
///
/// Its outcome is unknown, as that of every 200 without an order id; but here the service itself says that it took no
/// order, and a list that lacks the order agrees with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEnvelope;

/// Marks a request that carries the `Authorization` that it is to be sent with, of a session that may be over: it is not
/// replaced, and no token is waited for, renewed or judged because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnAuthorization;

/// Marks a request that repeats one already admitted once: it waits at the head of its lane, not at the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadOfLane;
