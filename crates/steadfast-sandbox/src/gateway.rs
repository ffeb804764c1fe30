mod account;
pub(crate) mod book;
pub(crate) mod clock;
mod conversion;
pub(crate) mod directory;
mod draw;
pub(crate) mod engine;
pub(crate) mod invalid_fault;
mod latency;
pub(crate) mod log;
mod market;
mod oauth;
mod order_history;
mod order_list;
mod order_row;
mod orders;
mod passage;
mod placement_fault;
pub(crate) mod plan;
mod published;
mod quota;
mod reply;
mod request;
pub(crate) mod service;
mod session;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod spec_reading;
mod special;
mod special_orders;
mod symbol_store;
pub(crate) mod totp;
mod traded;
pub(crate) mod truth;

pub use self::{
    invalid_fault::InvalidFault,
    plan::FaultEntry,
    service::{Gateway, PeerIp},
    settings::{EleventhSession, LoginAnswer},
    spec_reading::{
        Axis, Counting, ErrorText, ExpiresIn, ExtraFields, InvalidAxis, IpRefusal, JsonBody, ListOrder,
        ListScope, ListShows, ListZone, NoDataStatus, OldToken, OrderIds, OrderZone, Prices, Quantity,
        Refused, RejectedOrders, Remarks, RetryAfter, SpecReading, VisibilityLag,
    },
    truth::{ArrivalTruth, Logins, OrderTruth, State},
};
