//! What a request carries from the upper half to the lower one.

use std::sync::{Arc, OnceLock};

use http::{Extensions, Method, Request};
use steadfast_spec::{
    Endpoint,
    ext::{self, Stamp},
};

use crate::{
    account::Account,
    halt::Run,
    stamp::{IntentNo, ReadNo},
};

/// Marks a request that the send guard must account for.
pub(crate) struct Ticket {
    pub(crate) account: Arc<Account>,
    pub(crate) purpose: TicketFor,
}

pub(crate) enum TicketFor {
    /// The sends of an order.
    Order {
        /// Set once, before the first of them; whoever drops the call abandons it.
        intent: OnceLock<IntentNo>,
        /// When it was asked for.
        run: Run,
    },
    /// A read of the order list.
    Read(ReadNo),
}

/// Marks a send that may leave in a session whose list nobody has asked for yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnySession;

impl Ticket {
    /// For an order that was asked for in this run.
    pub(crate) fn for_order(account: Arc<Account>, run: Run) -> Arc<Self> {
        Arc::new(Self { account, purpose: TicketFor::Order { intent: OnceLock::new(), run } })
    }

    /// The ticket of a request, if it has one.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        ext::Ticket::of(extensions).and_then(ext::Ticket::get)
    }

    /// The order's intent, once it has one.
    pub(crate) fn intent(&self) -> Option<IntentNo> {
        match &self.purpose {
            TicketFor::Order { intent, .. } => intent.get().copied(),
            TicketFor::Read(_) => None,
        }
    }

    /// Says which intent the order is.
    pub(crate) fn set_intent(&self, number: IntentNo) {
        if let TicketFor::Order { intent, .. } = &self.purpose {
            // Set once: a call opens one intent.
            let _ = intent.set(number);
        }
    }
}

/// True for `POST /api/oms/place-order`: by its route, or by its path where no layer has set one.
pub(crate) fn is_place_order<B>(request: &Request<B>) -> bool {
    match ext::Route::of(request.extensions()) {
        Some(route) => route.endpoint == Some(Endpoint::PlaceOrder),
        None => request.method() == Method::POST && request.uri().path().ends_with(PLACE_ORDER),
    }
}

/// True for a change of an order, where a layer has said so; its path is not shown.
pub(crate) fn is_change<B>(request: &Request<B>) -> bool {
    let route = ext::Route::of(request.extensions());
    route.is_some_and(|route| route.endpoint == Some(Endpoint::ModifyOrder))
}

/// True for `GET /api/oms/orders`, whoever asks and with whatever query.
pub(crate) fn is_order_list<B>(request: &Request<B>) -> bool {
    match ext::Route::of(request.extensions()) {
        Some(route) => route.endpoint == Some(Endpoint::Orders),
        None => request.method() == Method::GET && request.uri().path().ends_with(ORDERS),
    }
}

pub(crate) const PLACE_ORDER: &str = "/api/oms/place-order";
pub(crate) const ORDERS: &str = "/api/oms/orders";
