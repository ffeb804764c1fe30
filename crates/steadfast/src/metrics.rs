//! Durations, rates and gauges through the [`metrics`](https://docs.rs/metrics) facade, for any exporter.
//!
//! There are two kinds of metrics; [`METRICS`] has the names of both:
//!
//! 1. Durations are recorded as they happen: with this feature every [`Stack`](crate::Stack) contains the layers below.
//!    Together they cost some 400 ns and three allocations for each call of one send.
//! 2. Counts and states that the layers hold anyway are read on request: call [`record`], or [`record_all`] where a
//!    process has several clients, right before the exporter renders, or from a timer.
//!
//! Labels come from closed sets, never from an instrument, order, user, account, address or raw path. The one extension
//! are zones of the caller's own, whose names are constants of the program.
//!
//! # Example
//!
//! ```
//! use metrics_util::debugging::DebuggingRecorder;
//! use steadfast::{Access, Client, metrics};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recorder = DebuggingRecorder::new(); // an exporter's in a program
//! let shown = recorder.snapshotter();
//! let client = Client::builder("https://api.example/v2".parse()?, Access::token("key", "token")?).build()?;
//! ::metrics::with_local_recorder(&recorder, || metrics::record(&client));
//!
//! let in_doubt = shown.snapshot().into_vec().into_iter().find(|(key, ..)| key.key().name() == metrics::ORDERS_IN_DOUBT);
//! assert!(in_doubt.is_some(), "page somebody while it is above zero");
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! [`CallMetricsLayer`] outermost; [`QueuedLayer`] right outside and [`AdmittedLayer`] right inside of the rate limit;
//! [`AttemptMetricsLayer`] right outside of [`ClassifyLayer`](steadfast_retry::ClassifyLayer), so that it runs once for
//! each send and sees what the answer proves. A [`Stack`](crate::Stack) has them there.
//!
//! # Clone
//!
//! Clones of the layers and services share nothing but the recorder.
//!
//! # Cancellation
//!
//! A call, a send or a wait for permits that is dropped is recorded as `dropped`, with the time so far.

mod attempt;
mod call;
mod catalog;
mod earlier;
mod keys;
mod login;
mod permit;
mod reading;
mod reason;

pub mod future {
    //! The futures of the services.

    pub use super::{
        attempt::ResponseFuture as AttemptFuture, call::ResponseFuture as CallFuture,
        permit::ResponseFuture as QueuedFuture,
    };
}

pub use self::{
    attempt::{AttemptMetrics, AttemptMetricsLayer},
    call::{CallMetrics, CallMetricsLayer},
    catalog::*,
    login::MeteredLogin,
    permit::{Admitted, AdmittedLayer, Queued, QueuedLayer},
    reading::{Reading, record, record_all},
};
