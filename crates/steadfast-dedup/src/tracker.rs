//! The shell around the protocol: its lock and those who wait for it, its clocks, and the task that reads the list.
//!
//! [`order_tracker`] is the public handle. It has an [`account`] for each name, which puts events into a
//! [`shared_protocol`] and wakes the [`waiters`]. The [`poller`] reads the list while an account needs it. A [`ticket`]
//! tells the guard which account and intent a request belongs to. [`replay`] turns a journal into events, [`undecided`] says
//! what it leaves in doubt.

pub(crate) mod account;
pub(crate) mod cached;
pub(crate) mod halt;
pub(crate) mod joined;
pub(crate) mod order_tracker;
pub(crate) mod polled_calls;
pub(crate) mod poller;
pub(crate) mod recovery;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod sent_credentials;
pub(crate) mod shared_protocol;
pub(crate) mod sync;
pub(crate) mod ticket;
pub(crate) mod timekeeper;
pub(crate) mod tokens;
pub(crate) mod undecided;
pub(crate) mod waiters;
