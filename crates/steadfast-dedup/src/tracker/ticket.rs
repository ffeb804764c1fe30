//! Data that a request carries from the outer layer to the inner one.

use std::sync::{Arc, OnceLock};

use http::{Extensions, Method, Request};
use steadfast_call::{Call, ext};
use steadfast_spec::Endpoint;

use crate::{
    numbers::{IntentNo, ReadNo},
    tracker::{account::Account, halt::HaltEpoch},
};

/// Marks a request that the send guard must account for.
pub(crate) struct Ticket {
    pub(crate) account: Arc<Account>,
    pub(crate) purpose: TicketFor,
}

pub(crate) enum TicketFor {
    /// The sends of an order.
    Order {
        /// Set once, before the first send. A dropped call abandons it.
        intent: OnceLock<IntentNo>,
        /// The epoch in which it was asked for.
        epoch: HaltEpoch,
    },
    /// A read of the order list.
    Read(ReadNo),
}

/// Marks a send that may leave in a session whose list was not asked for yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnySession;

impl Ticket {
    /// Returns the ticket of an order that was asked for in this epoch.
    pub(crate) fn for_order(account: Arc<Account>, epoch: HaltEpoch) -> Arc<Self> {
        Arc::new(Self { account, purpose: TicketFor::Order { intent: OnceLock::new(), epoch } })
    }

    /// Returns the ticket of a request, if it has one.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        Call::of(extensions).ticket().and_then(ext::Ticket::get)
    }

    /// Returns the order's intent, once it has one.
    pub(crate) fn intent(&self) -> Option<IntentNo> {
        match &self.purpose {
            TicketFor::Order { intent, .. } => intent.get().copied(),
            TicketFor::Read(_) => None,
        }
    }

    /// Sets the order's intent.
    pub(crate) fn set_intent(&self, number: IntentNo) {
        if let TicketFor::Order { intent, .. } = &self.purpose {
            // Set once: a call opens one intent.
            let _ = intent.set(number);
        }
    }
}

/// The kind of a request, for the two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `POST /api/oms/place-order`.
    Order,
    /// A change of an order, or an order of a special kind, an exit or a conversion, if a layer has marked it so: their
    /// paths are not documented.
    Change,
    /// `GET /api/oms/orders`, by any sender and with any query.
    List,
    Other,
}

impl Kind {
    /// Returns the kind by its route, or by its path where no layer has set one.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let Some(route) = Call::of(request.extensions()).route() else {
            let (method, path) = (request.method(), request.uri().path());
            let (posts, gets) = (method == Method::POST, method == Method::GET);
            return match path {
                order if posts && order.ends_with(PLACE_ORDER) => Self::Order,
                list if gets && list.ends_with(ORDERS) => Self::List,
                _ => Self::Other,
            };
        };
        match route.endpoint {
            Some(Endpoint::PlaceOrder) => Self::Order,
            Some(endpoint) if endpoint.moves_money() => Self::Change,
            None if route.may_trade => Self::Change,
            Some(Endpoint::Orders) => Self::List,
            _ => Self::Other,
        }
    }
}

pub(crate) const PLACE_ORDER: &str = "/api/oms/place-order";
pub(crate) const ORDERS: &str = "/api/oms/orders";

#[cfg(test)]
mod tests {
    use steadfast_call::Route;

    use super::*;

    #[test]
    fn a_route_says_what_a_request_is_whatever_its_path() {
        for (endpoint, kind) in [
            (Endpoint::PlaceOrder, Kind::Order),
            (Endpoint::ModifyOrder, Kind::Change),
            (Endpoint::PlaceSpecial, Kind::Change),
            (Endpoint::ExitOrder, Kind::Change),
            (Endpoint::CancelSpecial, Kind::Other),
            (Endpoint::Orders, Kind::List),
            (Endpoint::CancelOrder, Kind::Other),
        ] {
            let mut request = Request::get("https://gateway.example/elsewhere").body(()).unwrap();
            Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(endpoint)));
            assert_eq!(Kind::of(&request), kind, "{endpoint:?}");
        }
        for (method, kind) in [
            (Method::GET, Kind::Other),
            (Method::DELETE, Kind::Other),
            (Method::POST, Kind::Change),
            (Method::PUT, Kind::Change),
        ] {
            let mut request = Request::new(());
            Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::guarded(&method)));
            assert_eq!(Kind::of(&request), kind, "a guarded {method}");
        }
    }
}
