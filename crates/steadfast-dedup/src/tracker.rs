//! The shell around the protocol: its lock and those who wait for it, its clocks, and the task that reads the list.

pub(crate) mod account;
pub(crate) mod asker;
pub(crate) mod cached;
pub(crate) mod halt;
pub(crate) mod joined;
pub(crate) mod order_tracker;
pub(crate) mod polled_calls;
pub(crate) mod poller;
pub(crate) mod recovery;
pub(crate) mod report;
pub(crate) mod shared_protocol;
pub(crate) mod sync;
pub(crate) mod ticket;
pub(crate) mod timekeeper;
pub(crate) mod tokens;
pub(crate) mod waiters;
