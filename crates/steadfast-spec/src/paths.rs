use http::Method;
use percent_encoding::percent_decode_str;

use crate::{Endpoint, InvalidOperation};

/// The paths of the endpoints whose paths the specification does not show.
///
/// With `None` the endpoint cannot be called. [`Paths::public`] holds paths from the public documentation of a service
/// with the same shown paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paths {
    /// `DELETE`, cancels an order (§4.5).
    pub cancel_order: Option<String>,
    /// `POST`, margin for one order (§4.5).
    pub order_margin: Option<String>,
    /// `GET`, scrip master data (§4.5).
    pub scrip_master: Option<String>,
    /// `PUT`, modifies an order (§4.5).
    pub modify_order: Option<String>,
    /// `GET`, quotes (§4.5).
    pub quotes: Option<String>,
    /// `GET`, positions (§4.5).
    pub positions: Option<String>,
    /// `GET`, holdings (§4.5).
    pub holdings: Option<String>,
    /// `GET`, funds (§4.5).
    pub funds: Option<String>,
    /// `POST`, places an order of a special kind: `/a/b/{kind}`.
    pub place_special: Option<String>,
    /// `PUT`, changes one: `/a/b/{kind}`.
    pub modify_special: Option<String>,
    /// `DELETE`, cancels one: `/a/b/{kind}`.
    pub cancel_special: Option<String>,
    /// `GET`, the orders of a special kind: `/a/b/{kind}`.
    pub special_orders: Option<String>,
    /// `POST`, leaves the position of a bracket or cover order.
    pub exit_order: Option<String>,
    /// `POST`, converts a position to another product.
    pub convert_position: Option<String>,
    /// `GET`, trades.
    pub trades: Option<String>,
    /// `GET`, the account's details.
    pub account_details: Option<String>,
    /// `POST`, ends the session.
    pub logout: Option<String>,
    /// `GET`, the groups of scrips.
    pub symbol_groups: Option<String>,
    /// `GET`, prices of a past interval.
    pub interval_data: Option<String>,
}

impl Paths {
    /// Returns the paths of public documentation; not part of the specification.
    #[must_use]
    pub fn public() -> Self {
        let path = |p: &str| Some(p.to_owned());
        Self {
            cancel_order: path("/api/oms/cancel-order"),
            order_margin: path("/api/oms/margin"),
            scrip_master: path("/api/mkt-data/scrips/master"),
            modify_order: path("/api/oms/modify-order"),
            quotes: path("/api/mkt-data/quotes"),
            positions: path("/api/account/positions"),
            holdings: path("/api/account/holdings"),
            funds: path("/api/account/funds"),
            ..Self::default()
        }
    }

    /// Returns the paths that a published client of a service with the same shown paths uses, special orders included;
    /// not part of the specification.
    #[must_use]
    pub fn published_client() -> Self {
        let path = |p: &str| Some(p.to_owned());
        Self {
            cancel_order: path("/api/oms/cancel-order"),
            order_margin: path("/api/oms/margin"),
            modify_order: path("/api/oms/modify-order"),
            positions: path("/api/oms/positions"),
            holdings: path("/api/oms/holdings"),
            funds: path("/api/oms/limits"),
            place_special: path("/api/oms/place-order/{kind}"),
            modify_special: path("/api/oms/modify-order/{kind}"),
            cancel_special: path("/api/oms/cancel-order/{kind}"),
            special_orders: path("/api/oms/orders/{kind}"),
            exit_order: path("/api/oms/exit-order"),
            convert_position: path("/api/oms/convert-position"),
            trades: path("/api/oms/trades"),
            account_details: path("/api/account/details"),
            logout: path("/api/account/logout"),
            symbol_groups: path("/api/mkt-data/scrips/symbol-store"),
            interval_data: path("/api/mkt-data/chart/interval-data"),
            // That client has neither.
            scrip_master: None,
            quotes: None,
        }
    }

    /// Checks that every path that is set can stand behind a base address: `/a/b`, percent-encoded, without a query or
    /// a parameter. The paths of special orders end with `/{kind}`.
    ///
    /// # Errors
    ///
    /// [`InvalidOperation::BadPath`], which names the first endpoint with a bad path.
    pub fn check(&self) -> Result<(), InvalidOperation> {
        let bad =
            |endpoint: &Endpoint| self.configured(*endpoint).is_some_and(|path| !is_path_of(*endpoint, path));
        Endpoint::all().find(bad).map_or(Ok(()), |endpoint| Err(InvalidOperation::BadPath(endpoint)))
    }

    /// Returns the configured path of an endpoint that the specification does not show.
    pub(crate) fn configured(&self, endpoint: Endpoint) -> Option<&str> {
        match endpoint {
            Endpoint::CancelOrder => self.cancel_order.as_deref(),
            Endpoint::OrderMargin => self.order_margin.as_deref(),
            Endpoint::ScripMaster => self.scrip_master.as_deref(),
            Endpoint::ModifyOrder => self.modify_order.as_deref(),
            Endpoint::Quotes => self.quotes.as_deref(),
            Endpoint::Positions => self.positions.as_deref(),
            Endpoint::Holdings => self.holdings.as_deref(),
            Endpoint::Funds => self.funds.as_deref(),
            Endpoint::PlaceSpecial => self.place_special.as_deref(),
            Endpoint::ModifySpecial => self.modify_special.as_deref(),
            Endpoint::CancelSpecial => self.cancel_special.as_deref(),
            Endpoint::SpecialOrders => self.special_orders.as_deref(),
            Endpoint::ExitOrder => self.exit_order.as_deref(),
            Endpoint::ConvertPosition => self.convert_position.as_deref(),
            Endpoint::Trades => self.trades.as_deref(),
            Endpoint::AccountDetails => self.account_details.as_deref(),
            Endpoint::Logout => self.logout.as_deref(),
            Endpoint::SymbolGroups => self.symbol_groups.as_deref(),
            Endpoint::IntervalData => self.interval_data.as_deref(),
            _ => None,
        }
    }

    /// Returns the path of `endpoint`, below the base address; `{scripGroup}` and `{kind}` stand for the path
    /// parameter.
    #[must_use]
    pub fn of(&self, endpoint: Endpoint) -> Option<&str> {
        match endpoint {
            Endpoint::Authorize => Some("/api-gw/oauth/authorize"),
            Endpoint::Token => Some("/api-gw/oauth/token"),
            Endpoint::IndividualToken => Some("/api-gw/oauth/individual-token-v2"),
            Endpoint::PlaceOrder => Some("/api/oms/place-order"),
            Endpoint::Orders => Some("/api/oms/orders"),
            Endpoint::History => Some("/api/oms/history"),
            Endpoint::BasketMargin => Some("/api/oms/basket-margin"),
            Endpoint::SymbolStore => Some("/api/mkt-data/scrips/symbol-store/{scripGroup}"),
            not_shown => self.configured(not_shown),
        }
    }

    /// Finds the endpoint of a request by its method and its path below the base address.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<Endpoint> {
        self.at(path).find(|endpoint| endpoint.method() == *method)
    }

    /// Returns the endpoints with this path, below the base address.
    pub fn at(&self, path: &str) -> impl Iterator<Item = Endpoint> {
        Endpoint::all().filter(move |endpoint| {
            self.of(*endpoint).is_some_and(|template| matches_template(template, path))
        })
    }
}

/// True if `path` can be that of `endpoint`.
pub(crate) fn is_path_of(endpoint: Endpoint, path: &str) -> bool {
    let has_kind = matches!(
        endpoint,
        Endpoint::PlaceSpecial | Endpoint::ModifySpecial | Endpoint::CancelSpecial | Endpoint::SpecialOrders
    );
    if has_kind { path.strip_suffix("/{kind}").is_some_and(is_path) } else { is_path(path) }
}

/// True if `path` is one path below a base address and nothing else.
fn is_path(path: &str) -> bool {
    let is_plain = path.bytes().all(|b| b.is_ascii_graphic() && !b"?#{}\\\"<>^`|".contains(&b));
    path.len() > 1 && path.starts_with('/') && !path.starts_with("//") && is_plain && !has_dots(path)
}

/// True if `template` is a path below a base address, in which a segment may be a `{name}` that stands for any one
/// segment.
#[must_use]
pub fn is_template(template: &str) -> bool {
    let is_parameter =
        |segment: &str| segment.len() > 2 && segment.starts_with('{') && segment.ends_with('}');
    let plain = |segment| if is_parameter(segment) { "parameter" } else { segment };
    is_path(&template.split('/').map(plain).collect::<Vec<_>>().join("/"))
}

/// True if `path` has the template's segments; a `{name}` segment matches any one segment. Paths are case-sensitive
/// (§7, 404).
#[must_use]
pub fn matches_template(template: &str, path: &str) -> bool {
    if template == path {
        return true;
    }
    // Most templates have no parameter, and then only an equal path matches.
    if !template.contains('{') {
        return false;
    }
    let mut wanted = template.split('/');
    let mut given = path.split('/');
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(w), Some(g)) if w.starts_with('{') && w.ends_with('}') => {
                if g.is_empty() || percent_decode_str(g).decode_utf8().is_err() {
                    return false;
                }
            }
            (Some(w), Some(g)) if w == g => {}
            _ => return false,
        }
    }
}

/// True if a server that resolves dots could read the path as another one.
#[must_use]
pub fn has_dots(path: &str) -> bool {
    // One or two dots, plain or escaped. A segment of more dots is a name.
    path.split('/')
        .any(|segment| after_dot(segment).is_some_and(|rest| rest.is_empty() || after_dot(rest) == Some("")))
}

fn after_dot(text: &str) -> Option<&str> {
    let escaped = || {
        let (start, rest) = text.split_at_checked(3)?;
        start.eq_ignore_ascii_case("%2e").then_some(rest)
    };
    text.strip_prefix('.').or_else(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_cannot_stand_behind_a_base_address_is_named() {
        assert_eq!((Paths::default().check(), Paths::public().check()), (Ok(()), Ok(())));
        for path in [
            "",
            "/",
            "api/oms/cancel",
            "//elsewhere.example/cancel",
            "https://elsewhere.example/cancel",
            "/api/cancel?version=1",
            "/api/cancel#now",
            "/api/cancel order",
            "/api/{orderId}",
            "/api/../cancel",
            "/api/%2e%2E/cancel",
            "/api/é",
        ] {
            let paths = Paths { cancel_order: Some(path.to_owned()), ..Paths::public() };
            let bad = InvalidOperation::BadPath(Endpoint::CancelOrder);
            assert_eq!(paths.check(), Err(bad), "{path:?}");
            assert_eq!(crate::Operation::cancel_order("1").target(&paths), Err(bad), "{path:?}");
        }
    }

    #[test]
    fn the_paths_of_special_orders_end_with_their_kind() {
        assert_eq!(Paths::published_client().check(), Ok(()));
        let find = |method, path| Paths::published_client().find(&method, path);
        assert_eq!(find(Method::POST, "/api/oms/place-order/bo"), Some(Endpoint::PlaceSpecial));
        assert_eq!(find(Method::POST, "/api/oms/place-order"), Some(Endpoint::PlaceOrder));
        assert_eq!(find(Method::DELETE, "/api/oms/cancel-order/oco"), Some(Endpoint::CancelSpecial));
        for bad in ["/api/oms/place-order", "/{kind}", "/api/{kind}/x", "place-order/{kind}"] {
            let paths = Paths { place_special: Some(bad.to_owned()), ..Paths::default() };
            assert_eq!(paths.check(), Err(InvalidOperation::BadPath(Endpoint::PlaceSpecial)), "{bad}");
        }
    }

    #[test]
    fn method_and_path_find_an_endpoint() {
        let paths = Paths::default();
        assert_eq!(paths.find(&Method::GET, "/api/oms/orders"), Some(Endpoint::Orders));
        assert_eq!(paths.find(&Method::PUT, "/api/oms/orders"), None);
        assert_eq!(paths.at("/api/oms/orders").next(), Some(Endpoint::Orders));
        assert_eq!(paths.find(&Method::DELETE, "/api/oms/cancel-order"), None, "not shown");
        assert_eq!(
            Paths::public().find(&Method::DELETE, "/api/oms/cancel-order"),
            Some(Endpoint::CancelOrder)
        );
    }
}
