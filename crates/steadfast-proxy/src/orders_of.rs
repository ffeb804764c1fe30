use http::{HeaderMap, HeaderName, HeaderValue};

/// The longest name.
const LONGEST: usize = 128;

/// The account or the sandbox whose orders a sidecar places.
///
/// It says so in a header of the answer to `GET /openapi.json`: a program before it can tell a rehearsal from trading, and knows
/// the account again behind another address. Those without a local token are told of a sandbox, and of nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrdersOf {
    /// Those of the account with this name, which is no secret.
    Account(String),
    /// Those of a sandbox, which end with it. The name is its own.
    Sandbox(String),
}

impl OrdersOf {
    /// The header. Its value is `account NAME` or `sandbox NAME`.
    pub const HEADER: HeaderName = HeaderName::from_static("x-steadfast-orders-of");

    /// Reads the header. `None` if it is missing, or in another form.
    #[must_use]
    pub fn told_in(headers: &HeaderMap) -> Option<Self> {
        let mut told = headers.get_all(Self::HEADER).iter();
        let (Some(told), None) = (told.next(), told.next()) else { return None };
        let (kind, name) = told.to_str().ok()?.split_once(' ')?;
        let is_name =
            !name.is_empty() && name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_graphic());
        match kind {
            _ if !is_name => None,
            "account" => Some(Self::Account(name.to_owned())),
            "sandbox" => Some(Self::Sandbox(name.to_owned())),
            _ => None,
        }
    }

    /// Returns the header's value; `None` if the name cannot stand there.
    pub(crate) fn value(&self) -> Option<HeaderValue> {
        let value = match self {
            Self::Account(name) => format!("account {name}"),
            Self::Sandbox(name) => format!("sandbox {name}"),
        };
        HeaderValue::from_str(&value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_and_nothing_else() {
        for orders_of in
            [OrdersOf::Account("3d17f4acf7ad".into()), OrdersOf::Sandbox("http://[::1]:1/v2".into())]
        {
            let mut headers = HeaderMap::new();
            headers.append(OrdersOf::HEADER, orders_of.value().unwrap());
            assert_eq!(OrdersOf::told_in(&headers), Some(orders_of.clone()));
            headers.append(OrdersOf::HEADER, orders_of.value().unwrap());
            assert_eq!(OrdersOf::told_in(&headers), None, "twice");
        }
        let long = format!("account {}", "a".repeat(LONGEST + 1));
        for other in ["", "account", "account ", "account a b", "sandboxes a", "Account a", &long] {
            let headers = HeaderMap::from_iter([(OrdersOf::HEADER, other.parse().unwrap())]);
            assert_eq!(OrdersOf::told_in(&headers), None, "{other}");
        }
    }
}
