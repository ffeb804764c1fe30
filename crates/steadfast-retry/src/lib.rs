//! Classifies answers and repeats requests that are certainly safe to repeat.
//!
//! Four pieces, each useful alone in any tower stack over [`http::Request`]:
//!
//! - [`RetryPolicy`] repeats, by a table of safe repeats and on a schedule of 1, 2, 4 and 8 s.
//! - [`ClassifyLayer`] writes what every answer proves into its extensions, and reads its body where needed.
//! - [`AttemptTimeoutLayer`] ends one send that takes too long, and says whether anything had left.
//! - [`BufferBodyLayer`] makes streamed request bodies repeatable.
//!
//! The decisions are plain data: [`may_repeat`] is the table of what, [`Rules::decide`] the rule of when.
//!
//! # Example
//!
//! ```
//! use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
//!
//! use http_body_util::Full;
//! use steadfast_retry::{AttemptTimeoutLayer, ClassifyLayer, Jitter, RetryPolicy};
//! use steadfast_call::Outcome;
//! use tokio::time::Instant;
//! use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! // A gateway that times out on everything.
//! let sends = Arc::new(AtomicU32::new(0));
//! let counter = sends.clone();
//! let transport = service_fn(move |_: http::Request<Full<bytes::Bytes>>| {
//!     counter.fetch_add(1, Ordering::Relaxed);
//!     async { Ok::<_, BoxError>(http::Response::builder().status(504).body(Full::<bytes::Bytes>::default())?) }
//! });
//! let stack = ServiceBuilder::new()
//!     .layer(RetryPolicy::default().jitter(Jitter::NONE).layer())
//!     .layer(ClassifyLayer::new())
//!     .layer(AttemptTimeoutLayer::default())
//!     .service(transport);
//!
//! // A list is read again, after 1, 2, 4 and 8 s.
//! let start = Instant::now();
//! let list = http::Request::get("https://host/v2/api/oms/orders").body(Full::default())?;
//! assert_eq!(stack.clone().oneshot(list).await?.status(), 504);
//! assert_eq!((sends.swap(0, Ordering::Relaxed), start.elapsed().as_secs()), (5, 15));
//!
//! // An order may have been placed, so it is never sent again from here.
//! let order = http::Request::post("https://host/v2/api/oms/place-order").body(Full::from("symId=x"))?;
//! let response = stack.oneshot(order).await?;
//! assert!(Outcome::of(response.extensions()).is_some_and(Outcome::is_unknown));
//! assert_eq!(sends.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Outer to inner: the layer that resolves orders in doubt, [`RetryPolicy`], the layers that must run for each send
//! (tokens, permits, headers, guards), [`ClassifyLayer`], [`AttemptTimeoutLayer`], the transport.
//!
//! # What it does not do
//!
//! It never repeats an order that may have been placed, never answers a 401 with a new token, and never sends a body
//! that it cannot send whole. Other layers of the stack do these.

mod backoff;
mod buffer;
mod classify;
mod collect;
mod ending;
mod error;
mod jitter;
mod last_result;
mod layer;
mod policy;
mod rules;
mod schedule;
mod settings;
mod spare_request;
mod throttled_cancel;
mod timeout;
mod trail;

pub mod future {
    //! The futures of the services.

    pub use crate::{
        buffer::layer::ResponseFuture as BufferBodyFuture, classify::layer::ResponseFuture as ClassifyFuture,
        layer::ResponseFuture as RetryFuture, timeout::layer::ResponseFuture as AttemptTimeoutFuture,
    };
}

pub use crate::{
    buffer::{
        buffered_body::BufferedBody,
        layer::{BufferBody, BufferBodyLayer},
        replay::Replay,
    },
    classify::{
        layer::{Classify, ClassifyLayer},
        peek::PEEK_LIMIT,
        peeked_body::PeekedBody,
        span::error_type,
    },
    ending::{Ending, may_repeat},
    error::{AttemptTimedOut, BodyStalled, RetriesEnded},
    jitter::Jitter,
    layer::{Classified, Retry, RetryLayer},
    policy::RetryPolicy,
    rules::{Decision, Observation, Remaining, Rules, StopReason},
    schedule::Schedule,
    timeout::{
        layer::{AttemptTimeout, AttemptTimeoutLayer},
        timed_body::TimedBody,
    },
    trail::{Attempt, AttemptTrail},
};
pub use steadfast_call::ext::Sends;
