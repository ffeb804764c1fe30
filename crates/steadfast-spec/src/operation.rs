use std::{error::Error, fmt};

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{Endpoint, Form, OrderChange, OrderRequest, Paths, paths::is_path_of};

/// In a path parameter all but unreserved characters are escaped.
const PATH_PARAMETER: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One call of the service, as data: endpoint, path parameter, query and form.
///
/// An operation knows no base address and no credentials; [`Operation::target`] gives the path and query below the
/// base address once the [`Paths`] are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    endpoint: Endpoint,
    parameter: Option<String>,
    query: Form,
    form: Option<Form>,
}

impl Operation {
    /// Creates a call of `endpoint` without parameters.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, parameter: None, query: Form::new(), form: None }
    }

    /// Places an order (§4.4).
    #[must_use]
    pub fn place_order(order: &OrderRequest) -> Self {
        Self::new(Endpoint::PlaceOrder).form(order.form())
    }

    /// Cancels an order (§4.5).
    #[must_use]
    pub fn cancel_order(order_id: &str) -> Self {
        Self::new(Endpoint::CancelOrder).query("orderId", order_id)
    }

    /// Changes an open order (§4.5).
    #[must_use]
    pub fn modify_order(order_id: &str, change: &OrderChange) -> Self {
        Self::new(Endpoint::ModifyOrder).form(change.form(order_id))
    }

    /// Lists the session's orders (§4.5).
    #[must_use]
    pub fn orders() -> Self {
        Self::new(Endpoint::Orders)
    }

    /// Scrip data for a group (§4.5).
    #[must_use]
    pub fn symbols(scrip_group: &str) -> Self {
        Self { parameter: Some(scrip_group.to_owned()), ..Self::new(Endpoint::SymbolStore) }
    }

    /// A call of an endpoint of special orders, for orders of `kind`: `gtt`, `oco`, `bo` or `co`.
    #[must_use]
    pub fn special(endpoint: Endpoint, kind: &str) -> Self {
        Self { parameter: Some(kind.to_owned()), ..Self::new(endpoint) }
    }

    /// Appends a query parameter.
    #[must_use]
    pub fn query(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.query = self.query.with(key, value);
        self
    }

    /// Sets the form body.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    /// Returns the endpoint.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.endpoint.method()
    }

    /// Returns the form as the request's body; `None` for a request without a body. A POST or PUT always has one (§1).
    #[must_use]
    pub fn body(&self) -> Option<String> {
        let writes = matches!(self.method(), Method::POST | Method::PUT);
        writes.then(|| self.form.as_ref().map(Form::encode).unwrap_or_default())
    }

    /// Returns the path and query below the base address.
    ///
    /// # Errors
    ///
    /// [`InvalidOperation`] if the endpoint has no usable path in `paths`, or its path parameter is missing or empty.
    pub fn target(&self, paths: &Paths) -> Result<String, InvalidOperation> {
        let template = paths.of(self.endpoint).ok_or(InvalidOperation::NoPath(self.endpoint))?;
        if paths.configured(self.endpoint).is_some_and(|path| !is_path_of(self.endpoint, path)) {
            return Err(InvalidOperation::BadPath(self.endpoint));
        }
        let mut target = match (template.split_once('{'), self.parameter.as_deref()) {
            (None, _) => template.to_owned(),
            (Some((head, tail)), Some(parameter))
                if !parameter.is_empty() && !matches!(parameter, "." | "..") =>
            {
                let tail = tail.split_once('}').map_or("", |(_, tail)| tail);
                format!("{head}{}{tail}", utf8_percent_encode(parameter, PATH_PARAMETER))
            }
            _ => return Err(InvalidOperation::NoParameter(self.endpoint)),
        };
        if !self.query.is_empty() {
            target.push('?');
            // §1: special characters are percent-encoded. In a form, a plus sign stands for a blank; a real plus is
            // escaped already.
            target.push_str(&self.query.encode().replace('+', "%20"));
        }
        Ok(target)
    }
}

/// An operation that cannot be addressed.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOperation {
    /// The specification does not show the endpoint's path, and the settings give none.
    NoPath(Endpoint),
    /// The path in the settings cannot stand behind a base address.
    BadPath(Endpoint),
    /// The endpoint's path parameter is missing.
    NoParameter(Endpoint),
}

impl fmt::Display for InvalidOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPath(endpoint) => write!(f, "no path is set for {}", endpoint.as_str()),
            Self::BadPath(endpoint) => {
                write!(f, "path of {} is not of the form /a/b, percent-encoded", endpoint.as_str())
            }
            Self::NoParameter(endpoint) => write!(f, "path parameter of {} is missing", endpoint.as_str()),
        }
    }
}

impl fmt::Debug for InvalidOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for InvalidOperation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_percent_encoded() {
        let paths = Paths::public();
        assert_eq!(
            Operation::symbols("NSE/EQ ?").target(&paths).unwrap(),
            "/api/mkt-data/scrips/symbol-store/NSE%2FEQ%20%3F"
        );
        assert_eq!(
            Operation::cancel_order("a&b=c").target(&paths).unwrap(),
            "/api/oms/cancel-order?orderId=a%26b%3Dc"
        );
    }

    #[test]
    fn a_blank_in_a_query_is_percent_encoded() {
        let quote = Operation::new(Endpoint::Quotes).query("symId", "A B+C");
        assert_eq!(quote.target(&Paths::public()).unwrap(), "/api/mkt-data/quotes?symId=A%20B%2BC");
    }

    #[test]
    fn what_cannot_be_addressed_is_named() {
        let error = Operation::cancel_order("1").target(&Paths::default()).unwrap_err();
        assert_eq!(error.to_string(), "no path is set for cancel-order");
        for group in ["", ".", ".."] {
            assert_eq!(
                Operation::symbols(group).target(&Paths::public()),
                Err(InvalidOperation::NoParameter(Endpoint::SymbolStore))
            );
        }
    }

    #[test]
    fn a_post_has_a_body_even_when_it_is_empty_and_a_get_has_none() {
        assert_eq!(Operation::new(Endpoint::BasketMargin).body(), Some(String::new()));
        assert_eq!(Operation::orders().body(), None);
    }
}
