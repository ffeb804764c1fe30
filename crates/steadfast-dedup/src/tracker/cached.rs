use http::{
    HeaderMap,
    header::{self, HeaderName, HeaderValue},
};

/// True if a cache on the way says that the answer is older than the read, or comes from the cache.
///
/// Caches say so in headers of many names (`X-Cache`, `Cache-Status`, `CF-Cache-Status`, `X-Cache-Hits`,
/// `X-From-Cache`) and with many words: `HIT`, `Hit from …`, `TCP_HIT`, `edge; hit`, a count.
pub(crate) fn is_out_of_a_cache(headers: &HeaderMap) -> bool {
    let is_old = |age: &HeaderValue| age.as_bytes() != b"0";
    let is_stale = |warning: &HeaderValue| warning.as_bytes().starts_with(b"110");
    let is_hit = |(name, value): (&HeaderName, &HeaderValue)| {
        let (name, value) = (name.as_str(), value.as_bytes());
        let counts = name.ends_with("cache-hits") || name.ends_with("from-cache");
        let says_so = value.windows(3).any(|word| word.eq_ignore_ascii_case(b"hit"));
        name.contains("cache")
            && *name != header::CACHE_CONTROL
            && (says_so || counts && value.iter().any(|digit| matches!(digit, b'1'..=b'9')))
    };
    headers.get_all(header::AGE).iter().any(is_old)
        || headers.get_all(header::WARNING).iter().any(is_stale)
        || headers.iter().any(is_hit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
    }

    #[test]
    fn o12_caches_of_every_make_are_heard() {
        for (name, value) in [
            ("age", "1"),
            ("warning", "110 - \"response is stale\""),
            ("x-cache", "MISS, HIT"),
            ("cache-status", "\"edge\"; hit; ttl=30"),
            ("cf-cache-status", "HIT"),
            ("x-cache-status", "HIT"),
            ("x-cache-remote", "TCP_HIT from edge"),
            ("x-cache-hits", "0, 1"),
            ("x-from-cache", "1"),
        ] {
            assert!(is_out_of_a_cache(&headers(name, value)), "{name}: {value}");
        }
        for (name, value) in [
            ("age", "0"),
            ("x-cache", "Miss from cloudfront"),
            ("cache-status", "edge; fwd=miss"),
            ("x-cache-hits", "0"),
            ("cache-control", "max-age=100"),
            ("x-whitelist", "hit"),
        ] {
            assert!(!is_out_of_a_cache(&headers(name, value)), "{name}: {value}");
        }
    }
}
