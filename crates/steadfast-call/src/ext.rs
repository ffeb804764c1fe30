//! The values in which layers tell each other about a call.
//!
//! On a request they are the fields of its [`Call`](crate::Call). On an answer, [`Outcome`], [`SendStamp`] and
//! [`TokenGeneration`] are read by [`Stamp::of`], several at once by [`Stamped`], and set by [`Stamp::put`]: together
//! they are one entry of the extensions. [`DoNotRetry`] and [`ErrorEnvelope`] are entries of their own.
//!
//! Instants are the standard library's, because this crate knows no runtime. Services convert with
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
    sends::Sends,
    stamps::{Stamp, Stamped},
};

/// The generation of a request's token; it grows by one with each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenGeneration(pub u64);

/// The record of one physical send: when its body was first polled, and how its connection can be ended.
///
/// Before the first poll nothing has left; after it anything may have. An answer that may leave a request in doubt
/// carries its stamp, so that the connection can be ended. The layer that ends sends puts it there.
///
/// # Clone
///
/// Clones share one stamp: one half stays with the request and writes it, the other half reads it.
#[derive(Clone, Debug, Default)]
pub struct SendStamp(Arc<Sent>);

#[derive(Debug, Default)]
struct Sent {
    left: OnceLock<Instant>,
    connection: OnceLock<Arc<dyn Connection>>,
}

/// The connection of a request, as far as layers need it: they can end it.
pub trait Connection: fmt::Debug + Send + Sync {
    /// Ends the connection abortively. Returns the instant from which on nothing more of it can reach the service.
    ///
    /// The descriptor is closed when this returns, and the kernel drops unsent data. A second call returns the first
    /// instant. `None`: the transport cannot promise this.
    fn abort(&self) -> Option<Instant>;
}

impl SendStamp {
    /// Creates an unwritten stamp.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the send at `now`; only the first call counts.
    pub fn stamp(&self, now: Instant) {
        // A second poll of the same body is the same send.
        let _ = self.0.left.set(now);
    }

    /// Returns the instant of the send; `None` proves that nothing has left.
    #[must_use]
    pub fn get(&self) -> Option<Instant> {
        self.0.left.get().copied()
    }

    /// Records the request's connection; only the first call counts. Called by the transport.
    pub fn set_connection(&self, connection: Arc<dyn Connection>) {
        // One physical send has one connection.
        let _ = self.0.connection.set(connection);
    }

    /// Ends the send's connection abortively. Returns the instant from which on nothing more of the request can reach
    /// the service; `None` if the transport cannot promise this.
    #[must_use]
    pub fn abort(&self) -> Option<Instant> {
        self.0.connection.get()?.abort()
    }
}

/// The caller's own name for an order: two calls with one `IntentId` place at most one order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(Arc<str>);

impl IntentId {
    /// Names an intent; an empty name counts as none.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A stable, public name of a request's credentials; never a secret.
///
/// Rate-limit windows by key and token, and all knowledge of orders, are kept by account. A request without this
/// belongs to the one unnamed account, the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(Arc<str>);

impl Account {
    /// Names an account.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Carries data from the outer half of a layer to its inner half, past layers that do not know it but may send the
/// request again.
///
/// # Clone
///
/// Clones share the content.
#[derive(Clone)]
pub struct Ticket(Arc<dyn Any + Send + Sync>);

impl Ticket {
    /// Creates a ticket with `what` as its content.
    #[must_use]
    pub fn new<T: Send + Sync + 'static>(what: Arc<T>) -> Self {
        Self(what)
    }

    /// Returns the content, if it is a `T`.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

// The content is opaque.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

/// Marks an answer that no layer further out may repeat: either the repeats are spent, or repeating is not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoNotRetry;

/// Marks an answer of 200 to a place-order whose envelope says `error` (§1).
///
/// Its outcome is unknown, like that of every 200 without an order id. But here the service itself says that it took no
/// order, and a list without the order confirms that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEnvelope;
