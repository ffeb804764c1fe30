//! A sidecar in front of the trading REST service, so that programs in any language need only another base address.
//!
//! This version holds the [`front`]: the decision, from the bytes of a request's head alone, whether the request may
//! pass. There is no server yet, no forwarding, and no listener for an operator.
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

pub mod front;
