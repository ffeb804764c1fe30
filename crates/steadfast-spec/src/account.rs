//! The state of an account: positions, holdings, funds and trades, and the history of an order.
//!
//! The specification shows of these records no more than `symId`, `qty`, `orderId` and the codes of §2 (§4.5). **The other
//! names are those of public documentation**, and may be wrong for your service. So little is required, fields that are
//! not known are passed over, and [`Operation`](crate::Operation) with the endpoint gives the answer as it is.

mod funds;
mod holding;
mod order_history;
mod payload;
mod position;
mod trade;

pub use self::{
    funds::Funds,
    holding::Holding,
    order_history::{HistoryEntry, OrderHistory},
    position::Position,
    trade::Trade,
};

#[cfg(test)]
mod tests;
