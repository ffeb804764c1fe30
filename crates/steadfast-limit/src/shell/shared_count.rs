use std::{fmt, pin::Pin, time::Duration};

use steadfast_call::Lane;
use tokio::time::Instant;

use crate::{error::Refusal, shell::zone_settings::ZoneSettings};

/// Counts requests together with other processes that use the same account.
///
/// A limiter of which [`Builder::count_with`](crate::Builder::count_with) was set asks it for each request, after its
/// own windows and lanes have admitted the request. Crate `steadfast-redis` has one for Redis and Valkey.
pub trait SharedCount: Send + Sync + fmt::Debug {
    /// Waits until the windows of all processes have room for a request in all of these zones.
    fn acquire(&self, zones: &[SharedAsk<'_>], lane: Lane, send_by: Option<Instant>) -> SharedAcquire;

    /// Learns that this process has just made the token, which nothing can have been counted of in these zones.
    fn has_new_token(&self, zones: &[SharedAsk<'_>]);

    /// Learns that this process may come to send requests in these zones.
    fn expect(&self, zones: &[SharedAsk<'_>]);
}

/// A request's question to a [`SharedCount`] about one of its zones.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SharedAsk<'a> {
    /// The zone as this limiter applies it.
    pub zone: &'a ZoneSettings,
    /// The key under which it counts the request: the same in all processes of one build.
    pub key: u64,
    /// How long after it has left the request may still be counted if nothing more is heard of it, as of one whose process
    /// has died: [`Builder::arrives_within`](crate::Builder::arrives_within).
    pub arrives_within: Duration,
}

/// The answer of [`SharedCount::acquire`].
pub type SharedAcquire = Pin<Box<dyn Future<Output = Result<Box<dyn SharedSlot>, Refusal>> + Send>>;

/// The slots of one request in the windows of all processes.
///
/// Dropped before [`sent`](Self::sent), they are free again. Dropped after it, they are held for as long as the
/// gateway may still count the request.
pub trait SharedSlot: Send + Sync {
    /// True as long as the request may leave.
    fn is_usable(&self) -> bool;

    /// Marks that the request leaves now, or may.
    fn sent(&mut self);

    /// Records that the head of the answer is back.
    fn settle(self: Box<Self>);

    /// Records that the answer will never be seen, and that the connection has ended abortively.
    fn lose_ended(self: Box<Self>);

    /// Records that the request certainly never left.
    fn refund(self: Box<Self>);
}
