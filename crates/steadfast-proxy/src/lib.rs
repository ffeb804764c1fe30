//! A sidecar in front of the trading REST service, so that programs in any language need only another base address.
//!
//! [`Proxy`] serves the service's own paths on a local address. Programs send the requests that they would send to the
//! service, with a local token instead of its own, and get the service's answers. Behind it is the whole stack: limits,
//! token, repeats that are safe, and the search for orders in doubt. The [`front`] decides, from the bytes of a request's
//! head alone, whether it may pass.
//!
//! # Orders
//!
//! 1. An order's answer is held until it is resolved, or its deadline ends. If its outcome stays unknown, the answer is
//!    504 with `retry-safe: false` and `verify: /api/oms/orders`.
//! 2. `Idempotency-Key` names the order. While an order of that name waits, a second request is answered with 409. A
//!    different order under the name gets 422; the same one gets the first one's outcome, also during a halt. Other requests
//!    that may change something must not have the header.
//! 3. An order without a name is answered with 409 while an equal one is unresolved, or if the answer to an equal one was
//!    not delivered within the last five minutes; with that one's id in `x-steadfast-order-id` if it is certain. Orders are
//!    equal if their instrument (in any case of letters), quantity, side, type, product, validity and the prices that
//!    their type needs are: no other field counts. `x-new-order: 1` places it all the same.
//!    "Delivered" means written to a connection that its caller had not left, and that was not reset when it was decided: when
//!    its caller closes its side or sends more, when an equal order asks, or when the connection ends. After a restart, all
//!    orders of the day without a name stand for five minutes, but for those that the journal says were heard.
//! 4. A cancel or a change in doubt is decided by the list, as by the typed client.
//!
//! `x-lane` (`critical`, `trading`, `normal`, `bulk`) sets a request's lane; a GET is at most normal. The sidecar's own
//! errors have the service's envelope and status, and the reason in `Proxy-Status`. Logins are the sidecar's own, so
//! `/api-gw/` does not pass. A program that insists on a login gets one here: `individual-token-v2` with a local token as
//! `password` answers that token, and nothing of it reaches the service. `GET /openapi.json` describes all paths, and
//! tells [whose orders](Proxy::orders_of) are placed. A path that is not in the table is sent once, under the strictest zone.
//!
//! Its [callers and their rights](front::Admission) can be changed while it serves ([`admit`](Proxy::admit)): no connection
//! ends for that.
//!
//! A listener is a port ([`serve`](Proxy::serve)), or a Unix socket for this user's programs alone
//! ([`serve_unix`](Proxy::serve_unix)). The operator's is a port.
//!
//! # Dashboard
//!
//! `GET /` of the operator's listener is a page for a person: what is in doubt, how much of the quota is used, how calls end,
//! and the switch that halts. A [link](Proxy::dashboard_link) opens it once: the token in its fragment becomes a cookie.
//!
//! 1. `GET /-/state` is everything that the page shows as JSON, with a `schema_version`, and `GET /-/events` the same as a
//!    stream (server-sent events): first all, then what changed, at most twice a second. Both take a local token, too.
//! 2. Only the page itself may call the listener from a browser. Every other page is refused, those of other ports too.
//! 3. The page loads nothing from elsewhere, and shows texts of the service as text alone.
//!
//! It names under `absent` what cannot be told yet: the wait of each lane, the reads for an order in doubt, and how a
//! call's time divides into queue, wire and repeats.
//!
//! # Several sidecars of one account
//!
//! Sidecars on several machines may [share](Proxy::shares_orders) the orders of an account through a store. One of them owns
//! the orders and places them. The others stand by: they pass reads and cancels, and answer an order or a change with 503, the
//! owner's name in `x-steadfast-owner` and in `Proxy-Status`. When a sidecar comes to own the orders, its program gives it
//! [another client](Proxy::replace_client).
//!
//! # What it does not do yet
//!
//! It tells no figures of calls to Prometheus. After a restart, orders in doubt are looked for at once.
//!
//! # Example
//!
//! ```
//! use steadfast::call::Routes;
//! use steadfast_proxy::front::{Front, Hosts, Refusal, Scope, Tokens};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = Tokens::new("trade-0123456789abcdef")?;
//! let front = Front::new(Hosts::of(["127.0.0.1:8080".parse()?]), tokens, Routes::default());
//!
//! let order = b"POST /v2/api/oms/place-order HTTP/1.1\r\nHost: localhost:8080\r\n\
//!     Authorization: Bearer any-key:trade-0123456789abcdef\r\nContent-Length: 0\r\n\r\n";
//! let admitted = front.admit(order).expect("an order of a program on this machine");
//! assert_eq!((admitted.path.as_str(), admitted.scope), ("/api/oms/place-order", Scope::Trade));
//!
//! // The same from a web page that pointed its own name at this machine.
//! let rebound = b"POST /v2/api/oms/place-order HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n";
//! assert_eq!(front.admit(rebound).unwrap_err(), Refusal::Host);
//! # Ok(())
//! # }
//! ```

mod admin;
mod answer;
mod away;
mod current;
mod dashboard;
mod description;
mod forward;
pub mod front;
mod halting;
mod listener;
mod login;
mod mask;
mod orders;
mod orders_of;
mod proxy;
mod ruling;
mod screen;
mod server;
mod sharing;
mod strangers;
mod switch;
mod token_health;
mod withheld;

pub use crate::{
    orders_of::OrdersOf,
    proxy::Proxy,
    sharing::{NotResumed, SharedOrders, Sharing},
};
