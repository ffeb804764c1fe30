//! The facts that layers tell each other about one call.
//!
//! Layers do not know each other. They meet in the [`Call`] of a request: its [`Route`], when it must have left, its
//! priority ([`Lane`]), the evidence of its send. An answer's [`Outcome`] says what it proves, and the [`Failure`] in
//! the chain of an error how far the request got. [`ext::Place`] is the order in which layers stand.
//!
//! Two things are here because several layers need them: clocks that count suspension ([`Moment`]), and state files of
//! this user ([`file`](mod@file)).
//!
//! The crate knows the service only through `steadfast-spec`, and no runtime and no HTTP client. Section numbers (`§7`)
//! refer to the service's specification.
//!
//! # Example
//!
//! ```
//! use http::StatusCode;
//! use steadfast_call::{Outcome, Peek, outcome_of};
//! use steadfast_spec::Endpoint;
//!
//! let placed = |body: &str| outcome_of(Some(Endpoint::PlaceOrder), StatusCode::GATEWAY_TIMEOUT, Peek::Whole(body.as_bytes()));
//!
//! // The gateway's own 504: the order may have been placed, and a list that lacks it allows another send.
//! assert!(placed(r#"{"s": "error", "msg": "Gateway timedout"}"#).is_unknown());
//! // A 429 proves that a read was not executed, whatever its body is.
//! let read = outcome_of(Some(Endpoint::Orders), StatusCode::TOO_MANY_REQUESTS, Peek::NotRead);
//! assert_eq!(read, Outcome::NotExecuted);
//! ```
//!
//! # What it does not do
//!
//! It holds no layer, sends nothing and waits for nothing.

mod call;
mod class;
mod classify;
mod clock;
pub mod ext;
mod failure;
pub mod file;
mod lane;
mod outcome;
mod place;
mod retry_after;
mod route;
mod sends;
mod sent;
mod spare;

pub use crate::{
    call::Call,
    class::Class,
    classify::{Peek, outcome_of, outcome_of_status},
    clock::{BootClock, Clocks, Moment, WallClock},
    failure::{BoxError, Failure, causes, find_cause, on_one_line, one_line},
    lane::Lane,
    outcome::{Fate, Outcome, Resend},
    retry_after::RetryAfter,
    route::{Route, Routes},
    spare::Spare,
};
