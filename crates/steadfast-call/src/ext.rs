//! The values in which layers tell each other about a call.
//!
//! On a request they are the fields of its [`Call`](crate::Call), and on an answer those of [`Sent`]. [`DoNotRetry`] and
//! [`ErrorEnvelope`] are entries of their own.
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
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use serde::{Deserialize, Serialize};

pub use crate::{place::Place, sends::Sends, sent::Sent};

/// The generation of a request's token; it grows by one with each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenGeneration(pub u64);

/// The evidence of one physical send: when its body was first polled, and how its connection can be ended.
///
/// 1. A send [begins](Self::begin) at the first poll of its body, or is [given up](Self::give_up) before that. The
///    first of the two decides for good: what was given up has not left, and never leaves.
/// 2. One transport [takes](Self::take) it. A clone of the request that is sent too, by a repeat or a hedge below the
///    layer that made the stamp, finds it taken and is not sent: the stamp could not say which of the two has left.
/// 3. An answer that may leave a request in doubt carries its stamp, so that the connection can be ended. The layer
///    that ends sends puts it there.
///
/// # Example
///
/// ```
/// use std::time::Instant;
///
/// use steadfast_call::ext::SendStamp;
///
/// let sent = SendStamp::new();
/// assert!(sent.begin(Instant::now()), "the body may leave");
/// assert!(!sent.give_up(), "too late: it may have left");
///
/// let unsent = SendStamp::new();
/// assert!(unsent.give_up(), "nothing has left");
/// assert!(!unsent.begin(Instant::now()), "and nothing will");
/// ```
///
/// # Clone
///
/// Clones share one stamp: one half stays with the request and writes it, the other half reads it.
#[derive(Clone, Debug, Default)]
pub struct SendStamp(Arc<Evidence>);

#[derive(Debug, Default)]
struct Evidence {
    taken: AtomicBool,
    /// When it began; `None` inside if it was given up before.
    began: OnceLock<Option<Instant>>,
    connection: Mutex<Option<Arc<dyn Connection>>>,
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

    /// Takes the stamp for a transport. Returns false if another send has taken it: then nothing may be sent.
    #[must_use = "what is taken twice must not be sent"]
    pub fn take(&self) -> bool {
        !self.0.taken.swap(true, Ordering::Relaxed)
    }

    /// Begins the send at `now`, before the first byte of its body is handed out. Returns false if it was given up:
    /// then nothing may leave.
    ///
    /// Another poll of the same body belongs to the same send.
    #[must_use = "what was given up must not leave"]
    pub fn begin(&self, now: Instant) -> bool {
        self.0.began.get_or_init(|| Some(now)).is_some()
    }

    /// Returns when the send began.
    #[must_use]
    pub fn began(&self) -> Option<Instant> {
        self.0.began.get().copied().flatten()
    }

    /// Gives the send up. Returns true if it has not begun: nothing has left, and nothing will.
    #[must_use = "what has begun may have left"]
    pub fn give_up(&self) -> bool {
        self.0.began.get_or_init(|| None).is_none()
    }

    /// Records the request's connection; the last call counts. Called by the transport, again if the first connection
    /// ended before a byte of the request was written.
    pub fn set_connection(&self, connection: Arc<dyn Connection>) {
        *self.0.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
    }

    /// Gives the send up, and ends its connection abortively. Returns the instant from which on nothing more of the
    /// request can reach the service; `None` if the transport cannot promise this.
    #[must_use]
    pub fn abort(&self) -> Option<Instant> {
        // First, so that a body is polled on the connection that is ended below, or never.
        let _ = self.give_up();
        let connection = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner).clone();
        connection?.abort()
    }
}

/// The caller's own name for an order: two calls with one `IntentId` place at most one order. In a file it is a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct IntentId(Arc<str>);

impl IntentId {
    /// Names an intent; an empty name counts as none. An order whose name is longer than 1,024 bytes is not sent.
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

impl From<String> for IntentId {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl From<IntentId> for String {
    fn from(id: IntentId) -> Self {
        id.as_str().to_owned()
    }
}

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_send_is_taken_once() {
        let send = SendStamp::new();
        let clone = send.clone();
        assert_eq!((send.take(), clone.take(), send.take()), (true, false, false));
    }

    #[test]
    fn a_send_that_began_cannot_be_given_up_and_a_given_up_one_cannot_begin() {
        for _ in 0..200 {
            let send = SendStamp::new();
            let clone = send.clone();
            let begun = thread::spawn(move || clone.begin(Instant::now()));
            let given_up = send.give_up();
            assert_eq!(begun.join().unwrap(), !given_up, "exactly one of them");
            assert_eq!(send.began().is_some(), !given_up);
        }
    }

    #[test]
    fn an_aborted_send_never_begins() {
        let send = SendStamp::new();
        assert_eq!(send.abort(), None);
        assert!(!send.begin(Instant::now()) && send.began().is_none());
    }
}
