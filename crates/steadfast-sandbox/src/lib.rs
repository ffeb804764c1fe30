//! A gateway that enforces the specification of the trading REST service to the letter, and misbehaves on demand.
//!
//! Test a trading program against it without an account: in process as a tower service with paused time
//! ([`Sandbox::gateway`]), or over TCP ([`Sandbox::serve`], `steadfast sandbox`). Both drive one pure state machine
//! of sessions, quotas, order book and [faults](Fault).
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, StatusCode, header};
//! use http_body_util::Full;
//! use steadfast_sandbox::Sandbox;
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Every order is placed, and every answer is a 504.
//! let sandbox = Sandbox::builder().seed(1).fault("placement.504-applied", 1.0)?.build()?;
//! let credentials = sandbox.credentials();
//! let order = "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=market&product=intraday&validity=day";
//! let request = Request::post("http://localhost/v2/api/oms/place-order")
//!     .header(header::AUTHORIZATION, format!("Bearer {}:{}", credentials.api_key, credentials.access_token))
//!     .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
//!     .body(Full::<Bytes>::from(order))?;
//!
//! let response = sandbox.gateway().oneshot(request).await?;
//! assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
//! assert_eq!(sandbox.state().orders.len(), 1, "the ground truth knows better");
//! # Ok(())
//! # }
//! ```
//!
//! Every endpoint, rule and error of §1-§9, and the five zones with [eight ways of counting](enforce). What the
//! specification leaves open is an axis of [`SpecReading`], or a setting of [`SandboxBuilder`].
//!
//! # What it does wrong
//!
//! Each [`Fault`] has one name, used in code, on the command line, in scripts, by the admin API and in the ground
//! truth. [`catalogue`] shows what covers each item of the fault catalogue.
//!
//! | group | what goes wrong | strikes |
//! |---|---|---|
//! | `placement`, `list` | the fate of an order and its answer; the contents of the list | one request |
//! | `auth`, `quota` | tokens, logins, addresses, clocks; unjustified refusals | one request; some last |
//! | `answer` | well-formed HTTP whose content is not as §1 says | one answer |
//! | `transport` | bytes that are not HTTP, too late, too few or too many ([`Seen`] says what a client sees of them) | one answer |
//! | `connection` | resets and other faults of a connection | one request, or one connection |
//! | `time` | how long each leg of the way takes | one leg |
//!
//! A request can meet one fault at each stage of its way: one on the way up, one at its quota, one at the placement,
//! one of its answer, and so on. Over a connection ([`Sandbox::serve`], [`Sandbox::serve_line`]) a fault writes its
//! bytes. The in-process service returns what an HTTP client would see of them, and refuses faults of connections by
//! name.
//!
//! # What it does not do
//!
//! It has no WebSocket channel, because the specification shows neither its address nor its messages (§6). Its market
//! fills half of the resting orders at random. It speaks HTTP/1.1 only, so there are no faults of HTTP/2.
//!
//! # Its own pages
//!
//! [`Sandbox::serve`] answers `GET /` with an index, `/openapi.json` with the paths as configured, `/faults` with the
//! [planned](Sandbox::planned_faults) faults and how often each has struck, and `/livez`. They are no requests to the
//! service: they are counted in no zone and stand in no ground truth. In process there is only the service.
//!
//! # The admin API
//!
//! [`Sandbox::serve_admin`] lets tests and people change a sandbox from outside, on a listener of its own. Every POST
//! is `application/json`, with or without a body; every answer is a JSON object, for a refused call `{"error": "..."}`.
//! Calls name the listener's own address or `localhost` in `Host`. Calls with an `Origin`, as web pages send it, are
//! refused with 403, because a page must not read the tokens of a sandbox.
//!
//! | Call | What it does |
//! |---|---|
//! | `GET /state` | shows the ground truth: every order, arrival, refusal and login, as [`State`] |
//! | `POST /faults` | injects one [`FaultEntry`], or all of a list or none |
//! | `POST /clock` | moves the clock: `{"advance_ms": 1000}`; answers `now_ns` |
//! | `POST /orders` | `{"action": "place", "order": {...}}` places an order as from another channel; `fill`, `cancel` and `reject` with `orderId` end an open one; answers `orderId` |
//! | `POST /tokens/revoke` | ends the session of `{"token": "..."}`, or all sessions without it |
//! | `POST /otp` | sends a one-time password to `{"client_id": "..."}`; answers its `code` |
//! | `POST /reset` | starts over; answers the new `access_token` |

mod admin;
mod builder;
pub mod enforce;
mod faults;
mod gateway;
mod sandbox;
mod server;
mod site;
pub mod wire;

pub use crate::{
    builder::{InvalidSandbox, SandboxBuilder},
    faults::{CatalogueRow, Cover, Fault, Place, Seen, UnknownFault, catalogue},
    gateway::{
        ArrivalTruth, Axis, Counting, EleventhSession, ErrorText, ExpiresIn, ExtraFields, FaultEntry,
        Gateway, InvalidAxis, InvalidFault, IpRefusal, JsonBody, ListOrder, ListScope, ListShows, ListZone,
        LoginAnswer, Logins, NoDataStatus, OldToken, OrderIds, OrderTruth, OrderZone, PeerIp, Prices,
        Quantity, Refused, RejectedOrders, Remarks, RetryAfter, SpecReading, State, VisibilityLag,
    },
    sandbox::{BookEdit, Credentials, OrderNotOpen, Sandbox},
    site::cors::{InvalidOrigin, Origin},
    wire::{Body, BrokenOff, NoAnswer},
};
