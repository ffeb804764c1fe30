//! What a request carries from the upper half to the lower one.

use std::sync::Arc;

use http::{Method, Request};
use steadfast_spec::{Endpoint, ext};

use crate::{
    account::Account,
    halt::Run,
    stamp::{IntentNo, ReadNo},
};

/// Marks a request that the send guard must account for.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    pub(crate) account: Arc<Account>,
    pub(crate) purpose: TicketFor,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TicketFor {
    /// A send of this order.
    Order {
        intent: IntentNo,
        /// Whether it may leave in a session whose list nobody has asked for yet.
        any_session: bool,
        /// When it was asked for.
        run: Run,
    },
    /// A read of the order list.
    Read(ReadNo),
}

/// True for `POST /api/oms/place-order`: by its route, or by its path where no layer has set one.
pub(crate) fn is_place_order<B>(request: &Request<B>) -> bool {
    match request.extensions().get::<ext::Route>() {
        Some(route) => route.endpoint == Some(Endpoint::PlaceOrder),
        None => request.method() == Method::POST && request.uri().path().ends_with(PLACE_ORDER),
    }
}

/// True for a change of an order, where a layer has said so; its path is not shown.
pub(crate) fn is_change<B>(request: &Request<B>) -> bool {
    let route = request.extensions().get::<ext::Route>();
    route.is_some_and(|route| route.endpoint == Some(Endpoint::ModifyOrder))
}

/// True for `GET /api/oms/orders`, whoever asks and with whatever query.
pub(crate) fn is_order_list<B>(request: &Request<B>) -> bool {
    match request.extensions().get::<ext::Route>() {
        Some(route) => route.endpoint == Some(Endpoint::Orders),
        None => request.method() == Method::GET && request.uri().path().ends_with(ORDERS),
    }
}

pub(crate) const PLACE_ORDER: &str = "/api/oms/place-order";
pub(crate) const ORDERS: &str = "/api/oms/orders";
