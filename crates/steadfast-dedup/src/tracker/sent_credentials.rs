//! The API key and the token that a request was sent with. An answer that repeats them as an order id names no order, and
//! they must not reach a journal.

use http::{
    HeaderMap,
    header::{self, HeaderValue},
};
use steadfast_spec::OrderRecord;

/// Shorter parts may occur in identifiers by chance.
const SHORTEST: usize = 8;

/// Longer than any service's order id. A journal keeps order ids, and must not grow by other texts.
const LONGEST: usize = 256;

/// True if every record's identifier can be an order id: not too long, and without the credentials of the request.
pub(crate) fn have_plausible_ids(records: &[OrderRecord], credentials: Option<&SentCredentials>) -> bool {
    let is_quoted = |order_id: &str| credentials.is_some_and(|credentials| credentials.occurs_in(order_id));
    records.iter().all(|record| record.order_id.len() <= LONGEST && !is_quoted(&record.order_id))
}

/// The `Authorization` of a request, in the extensions of its answer.
#[derive(Clone)]
pub(crate) struct SentCredentials(HeaderValue);

impl SentCredentials {
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get(header::AUTHORIZATION).cloned().map(Self)
    }

    /// True if an order id contains the key or the token. Then it is no order id, and must not reach a journal.
    pub(crate) fn occurs_in(&self, order_id: &str) -> bool {
        let parts = self.0.as_bytes().split(|byte| matches!(byte, b' ' | b':'));
        let mut secrets = parts.filter(|part| part.len() >= SHORTEST);
        secrets.any(|part| order_id.as_bytes().windows(part.len()).any(|piece| piece == part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x01_the_key_or_the_token_names_no_order() {
        let mut headers = HeaderMap::new();
        assert!(SentCredentials::of(&headers).is_none());
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer key-5678:token-78"));
        let credentials = SentCredentials::of(&headers).unwrap();
        for quoted in ["key-5678", "token-78", "x-token-78-1", "key-5678:token-78"] {
            assert!(credentials.occurs_in(quoted), "{quoted}");
        }
        for id in ["", "240101000000001", "token-7", "Bearer"] {
            assert!(!credentials.occurs_in(id), "{id}");
        }
    }
}
