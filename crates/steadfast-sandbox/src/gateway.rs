mod account;
pub(crate) mod book;
pub(crate) mod clock;
mod conversion;
pub(crate) mod directory;
mod draw;
pub(crate) mod engine;
mod latency;
pub(crate) mod log;
mod market;
mod oauth;
mod orders;
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
pub(crate) mod truth;

pub use self::{
    plan::{FaultEntry, InvalidFault},
    service::{Gateway, PeerIp},
    settings::{EleventhSession, LoginAnswer},
    spec_reading::{
        Axis, Counting, ErrorText, ExpiresIn, ExtraFields, InvalidAxis, IpRefusal, JsonBody, ListOrder,
        ListScope, ListShows, ListZone, NoDataStatus, OldToken, OrderIds, OrderZone, Prices, Quantity,
        Refused, RejectedOrders, Remarks, RetryAfter, SpecReading, VisibilityLag,
    },
    truth::{ArrivalTruth, Logins, OrderTruth, State},
};
