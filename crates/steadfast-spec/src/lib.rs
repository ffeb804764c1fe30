//! The trading REST service as data.
//!
//! Everything that the service's specification states, and nothing else: [`Endpoint`]s with their zones,
//! [`OrderRequest`]s and their field codes, the response [`Envelope`], the error [`table`](ERRORS), and [`Outcome`],
//! the one vocabulary for what an answer proves. The typed extensions that several layers read from a request or a
//! response are in [`ext`].
//!
//! The crate is pure: no runtime, no sockets, no clock of its own. Section numbers (`§4.4`) in these pages refer
//! to the service's specification.
//!
//! # Example
//!
//! ```
//! use steadfast_spec::{OrderRequest, OrderType, Product, Side, SymId, Validity};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let order = OrderRequest::builder()
//!     .sym_id("EQT_INFY_EQ_NSE".parse::<SymId>()?)
//!     .side(Side::Buy)
//!     .qty(10)
//!     .order_type(OrderType::Limit)
//!     .product(Product::Delivery)
//!     .validity(Validity::Day)
//!     .limit_price("1500.05".parse()?)
//!     .build()?;
//! assert_eq!(
//!     order.form().encode(),
//!     "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&product=delivery&validity=day&limitPrice=1500.05",
//! );
//!
//! // A limit order without its price is refused here, before anything is sent, and the error names the field.
//! let refused = OrderRequest::builder()
//!     .sym_id("EQT_INFY_EQ_NSE".parse::<SymId>()?)
//!     .side(Side::Buy)
//!     .qty(10)
//!     .order_type(OrderType::Limit)
//!     .product(Product::Delivery)
//!     .validity(Validity::Day)
//!     .build();
//! assert_eq!(refused.unwrap_err().field(), "limitPrice");
//! # Ok(())
//! # }
//! ```
//!
//! # What it does not do
//!
//! It sends nothing and waits for nothing. Record fields that the specification does not show are kept as text
//! or ignored, never guessed.

mod base_url;
mod classify;
mod clock;
mod codes;
mod decimal;
mod endpoint;
mod envelope;
mod error_table;
pub mod ext;
mod failure;
pub mod file;
mod form;
mod obeyed;
mod operation;
mod order;
mod order_change;
mod outcome;
mod place;
mod record;
mod retry_after;
mod route;
mod scope;
mod sends;
mod spare;
mod stamps;
mod sym_id;
mod token;
mod zone;

pub use rust_decimal::Decimal;

pub use crate::{
    base_url::{BaseUrl, InvalidBaseUrl},
    classify::{Peek, outcome_of, outcome_of_status},
    clock::{BootClock, Clocks, Moment, WallClock},
    codes::{LegType, OrderStatus, OrderType, Product, Side, UnknownCode, Validity},
    decimal::{InvalidDecimal, parse_decimal},
    endpoint::{AuthKind, Class, Endpoint},
    envelope::{Envelope, EnvelopeError, PlacedOrder},
    error_table::{ERRORS, ErrorRow, Origin, is_documented, msg},
    failure::{BoxError, Failure, causes, find_cause, on_one_line, one_line},
    form::{Form, MalformedForm},
    obeyed::is_obeyed,
    operation::{InvalidOperation, Operation},
    order::{InvalidOrder, InvalidOrderReason, OrderRequest, OrderRequestBuilder},
    order_change::OrderChange,
    outcome::{Fate, Outcome, Resend},
    place::Place,
    record::{Code, FieldNames, OrderListReader, OrderRecord, UnreadableRecord, parse_order_list},
    retry_after::RetryAfter,
    route::{Paths, Route, Routes},
    scope::Scope,
    spare::Spare,
    sym_id::{AssetClass, EmptySymId, OptionKind, SymId, SymIdShape},
    token::{InvalidTokenRecord, TokenRecord},
    zone::{Lane, Window, Zone, ZoneSpec, zones},
};
