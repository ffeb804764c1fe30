//! The trading REST service as data.
//!
//! Everything that the service's specification states: [`Endpoint`]s with their [`Paths`] and zones,
//! [`OrderRequest`]s and their field codes, the response [`Envelope`], the [`OrderRecord`]s of the order list, and the
//! error [`table`](ERRORS); and, from public documentation, the records of an account: [`Position`], [`Holding`], [`Funds`],
//! [`Trade`] and [`OrderHistory`].
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
//!     .limit_price("1500.05")
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
//! # In a program's own files
//!
//! Orders, changes, records and codes implement serde's traits. An order is the map of its form's fields, numbers are
//! texts, and a wrong order is refused when it is read.
//!
//! # What it does not do
//!
//! It sends nothing and waits for nothing. Record fields that the specification does not show are kept as text
//! or ignored, never guessed.

mod account;
mod base_url;
mod codes;
mod decimal;
mod display;
mod endpoint;
mod envelope;
mod error_table;
mod form;
mod openapi;
mod operation;
mod order;
mod order_change;
mod paths;
mod record;
mod scope;
mod serialized;
mod sym_id;
mod tag;
mod token;
mod zone;

pub use rust_decimal::Decimal;

pub use crate::{
    account::{Funds, HistoryEntry, Holding, OrderHistory, Position, Trade},
    base_url::{BaseUrl, InvalidBaseUrl},
    codes::{LegType, OrderStatus, OrderType, Product, Side, UnknownCode, Validity},
    decimal::{InvalidDecimal, ToDecimal, parse_decimal},
    display::changes_display,
    endpoint::{AuthKind, Endpoint},
    envelope::{Envelope, EnvelopeError, PlacedOrder},
    error_table::{ERRORS, ErrorRow, Origin, is_documented, msg},
    form::{Form, MalformedForm},
    openapi::OpenApi,
    operation::{InvalidOperation, Operation},
    order::{InvalidOrder, InvalidOrderReason, OrderRequest, OrderRequestBuilder},
    order_change::OrderChange,
    paths::{Paths, has_dots, is_template, matches_template},
    record::{Code, FieldNames, OrderListReader, OrderRecord, UnreadableRecord, parse_order_list},
    scope::Scope,
    sym_id::{AssetClass, EmptySymId, OptionKind, SymId, SymIdShape},
    tag::{CutTag, NoTag, ShownTag, Tag},
    token::{InvalidTokenRecord, TokenRecord},
    zone::{Window, Zone, ZoneSpec, zones},
};
