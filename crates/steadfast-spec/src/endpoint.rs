use http::Method;

use crate::Zone;

/// An endpoint of the service (§4.1).
///
/// Endpoints with a path that is "not shown" have none until [`Paths`](crate::Paths) supplies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Endpoint {
    /// `GET /api-gw/oauth/authorize`: starts the login flow.
    Authorize,
    /// `POST /api-gw/oauth/token`: exchanges an authorization code for an access token (§4.2).
    Token,
    /// `POST /api-gw/oauth/individual-token-v2`: a token for a two-factor code (§4.3).
    IndividualToken,
    /// `POST /api/oms/place-order` (§4.4).
    PlaceOrder,
    /// Modifies an order; path not shown.
    ModifyOrder,
    /// `DELETE` with query parameter `orderId`; path not shown (§4.5).
    CancelOrder,
    /// `GET /api/oms/orders`: the session's orders.
    Orders,
    /// `GET /api/oms/history`.
    History,
    /// `POST /api/oms/basket-margin`.
    BasketMargin,
    /// The margin for one order; path not shown.
    OrderMargin,
    /// `GET /api/mkt-data/scrips/symbol-store/{scripGroup}`.
    SymbolStore,
    /// Scrip master data; path not shown; a large payload.
    ScripMaster,
    /// Quotes; path not shown.
    Quotes,
    /// Positions; path not shown.
    Positions,
    /// Holdings; path not shown.
    Holdings,
    /// Funds; path not shown.
    Funds,
    /// Places an order of a special kind, such as a bracket or a trigger; not in the specification.
    PlaceSpecial,
    /// Changes an order of a special kind; not in the specification.
    ModifySpecial,
    /// Cancels an order of a special kind; not in the specification.
    CancelSpecial,
    /// Lists the orders of a special kind; not in the specification.
    SpecialOrders,
    /// Leaves the position of a bracket or cover order; not in the specification.
    ExitOrder,
    /// Converts a position to another product; not in the specification.
    ConvertPosition,
    /// Trades; not in the specification.
    Trades,
    /// The account's details; not in the specification.
    AccountDetails,
    /// Ends the session; not in the specification.
    Logout,
    /// The groups of scrips; not in the specification.
    SymbolGroups,
    /// Prices of a past interval; not in the specification.
    IntervalData,
}

/// The required content of a request's `Authorization` header (§5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthKind {
    /// `Bearer <api_key>:<access_token>`.
    Full,
    /// `Bearer <api_key>`.
    ApiKey,
    /// No header.
    None,
}

impl Endpoint {
    /// Every endpoint of the specification, in the order of §4.1; those named only by §4.5 come last.
    pub const SPECIFIED: [Self; 16] = [
        Self::Authorize,
        Self::Token,
        Self::IndividualToken,
        Self::PlaceOrder,
        Self::Orders,
        Self::History,
        Self::CancelOrder,
        Self::BasketMargin,
        Self::OrderMargin,
        Self::SymbolStore,
        Self::ScripMaster,
        Self::ModifyOrder,
        Self::Quotes,
        Self::Positions,
        Self::Holdings,
        Self::Funds,
    ];

    /// The endpoints that only a published client shows ([`Paths::published_client`](crate::Paths::published_client)).
    pub const PUBLISHED: [Self; 11] = [
        Self::PlaceSpecial,
        Self::ModifySpecial,
        Self::CancelSpecial,
        Self::SpecialOrders,
        Self::ExitOrder,
        Self::ConvertPosition,
        Self::Trades,
        Self::AccountDetails,
        Self::Logout,
        Self::SymbolGroups,
        Self::IntervalData,
    ];

    /// Returns the endpoints of both lists.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::SPECIFIED.into_iter().chain(Self::PUBLISHED)
    }

    /// True for requests that move money in a way that no list of orders can check: special kinds of orders, exits,
    /// conversions. They are never repeated if they may have been executed, and a halt stops them.
    #[must_use]
    pub const fn is_special(self) -> bool {
        matches!(self, Self::PlaceSpecial | Self::ModifySpecial | Self::ExitOrder | Self::ConvertPosition)
    }

    /// True if executing it twice, or too late, can cost money. Only the service's own words prove that it was refused.
    #[must_use]
    pub const fn moves_money(self) -> bool {
        matches!(self, Self::PlaceOrder | Self::ModifyOrder) || self.is_special()
    }

    /// Returns the endpoint's method (§4.1).
    #[must_use]
    pub const fn method(self) -> Method {
        match self {
            Self::Token
            | Self::IndividualToken
            | Self::PlaceOrder
            | Self::BasketMargin
            | Self::OrderMargin
            | Self::PlaceSpecial
            | Self::ExitOrder
            | Self::ConvertPosition
            | Self::Logout => Method::POST,
            Self::ModifyOrder | Self::ModifySpecial => Method::PUT,
            Self::CancelOrder | Self::CancelSpecial => Method::DELETE,
            Self::Authorize
            | Self::Orders
            | Self::History
            | Self::SymbolStore
            | Self::ScripMaster
            | Self::Quotes
            | Self::Positions
            | Self::Holdings
            | Self::Funds
            | Self::SpecialOrders
            | Self::Trades
            | Self::AccountDetails
            | Self::SymbolGroups
            | Self::IntervalData => Method::GET,
        }
    }

    /// Returns the required content of its `Authorization` header (§4.1, §5).
    #[must_use]
    pub const fn auth(self) -> AuthKind {
        match self {
            Self::Authorize | Self::Token => AuthKind::None,
            Self::IndividualToken => AuthKind::ApiKey,
            _ => AuthKind::Full,
        }
    }

    /// Returns the zones that it falls under (§8); a request must satisfy all of them.
    #[must_use]
    pub const fn zones(self) -> &'static [Zone] {
        match self {
            Self::IndividualToken => &[Zone::OTP, Zone::API_KEY],
            Self::Authorize | Self::Token => &[Zone::API_KEY],
            Self::PlaceOrder | Self::PlaceSpecial => &[Zone::PLACE_ORDER],
            Self::SymbolStore
            | Self::ScripMaster
            | Self::Quotes
            | Self::Positions
            | Self::Holdings
            | Self::Funds
            | Self::SymbolGroups
            | Self::IntervalData => &[Zone::DATA],
            Self::ModifyOrder
            | Self::CancelOrder
            | Self::Orders
            | Self::History
            | Self::BasketMargin
            | Self::OrderMargin
            | Self::ModifySpecial
            | Self::CancelSpecial
            | Self::SpecialOrders
            | Self::ExitOrder
            | Self::ConvertPosition
            | Self::Trades
            | Self::AccountDetails
            | Self::Logout => &[Zone::GENERAL],
        }
    }

    /// Returns the endpoint's name for logs, metrics and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authorize => "authorize",
            Self::Token => "token",
            Self::IndividualToken => "individual-token",
            Self::PlaceOrder => "place-order",
            Self::ModifyOrder => "modify-order",
            Self::CancelOrder => "cancel-order",
            Self::Orders => "orders",
            Self::History => "history",
            Self::BasketMargin => "basket-margin",
            Self::OrderMargin => "order-margin",
            Self::SymbolStore => "symbol-store",
            Self::ScripMaster => "scrip-master",
            Self::Quotes => "quotes",
            Self::Positions => "positions",
            Self::Holdings => "holdings",
            Self::Funds => "funds",
            Self::PlaceSpecial => "place-special",
            Self::ModifySpecial => "modify-special",
            Self::CancelSpecial => "cancel-special",
            Self::SpecialOrders => "special-orders",
            Self::ExitOrder => "exit-order",
            Self::ConvertPosition => "convert-position",
            Self::Trades => "trades",
            Self::AccountDetails => "account-details",
            Self::Logout => "logout",
            Self::SymbolGroups => "symbol-groups",
            Self::IntervalData => "interval-data",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_with_a_code_falls_under_two_zones_and_everything_else_under_one() {
        for endpoint in Endpoint::all() {
            let expected = if endpoint == Endpoint::IndividualToken { 2 } else { 1 };
            assert_eq!(endpoint.zones().len(), expected, "{endpoint:?}");
        }
    }
}
