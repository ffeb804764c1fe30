//! Ordered key=value pairs, and the orders that the tests place.
//!
//! The encoding is written out here rather than taken from a library, so that the gateway's own choice of
//! library is tested too.

#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn new<const N: usize>(fields: [(&str, &str); N]) -> Self {
        Self(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec())
    }

    /// Sets a field, in its old place if the form already has it.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        self
    }

    #[track_caller]
    pub(crate) fn get(&self, name: &str) -> &str {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no field {name}"))
    }

    pub(crate) fn encoded(&self) -> String {
        self.pairs(|value| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            let encoded = value.bytes().map(|byte| match is_plain(byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            });
            encoded.collect()
        })
    }

    /// Returns the same form with each byte of each value percent-encoded, which must mean the same.
    pub(crate) fn fully_percent_encoded(&self) -> String {
        self.pairs(percent_encoded)
    }

    /// Reads a query back, as a client reads that of a redirect.
    pub(crate) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(name, value)| (name.to_owned(), percent_decoded(value))).collect())
    }

    fn pairs(&self, encode: impl Fn(&str) -> String) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, tail @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit");
                bytes.push((digit(*high) * 16 + digit(*low)) as u8);
                rest = tail;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).expect("text")
}

/// Returns a limit order with exactly the fields that §4.4 requires of it.
pub(crate) fn limit_order(symbol: &str) -> Form {
    order_of_type(symbol, "limit")
}

/// Returns an order of the given price type with exactly the fields that §4.4 requires of it.
pub(crate) fn order_of_type(symbol: &str, price_type: &str) -> Form {
    let order = Form::new([
        ("symId", symbol),
        ("qty", "10"),
        ("side", "buy"),
        ("type", price_type),
        ("product", "delivery"),
        ("validity", "day"),
    ]);
    match price_type {
        "limit" => order.with("limitPrice", "100.50"),
        "stoplimit" => order.with("limitPrice", "100.50").with("trigPrice", "100.00"),
        "stopmarket" => order.with("trigPrice", "100.00"),
        _ => order,
    }
}
