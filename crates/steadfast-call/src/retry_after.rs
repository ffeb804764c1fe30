use std::time::Duration;

use http::{
    HeaderMap, HeaderValue,
    header::{DATE, RETRY_AFTER},
};

/// The delay of an answer's `Retry-After` header.
///
/// A number of seconds is taken as it is. A date is taken relative to the answer's own `Date`, because this machine's
/// clock may be wrong; without a `Date` it is ignored. A date in the past asks for no delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RetryAfter(pub Duration);

impl RetryAfter {
    /// Reads the header; of several, the one with the longest delay. `None` if none is readable.
    #[must_use]
    pub fn parse(headers: &HeaderMap) -> Option<Self> {
        headers.get_all(RETRY_AFTER).iter().filter_map(|value| Self::asked(value, headers)).max()
    }

    fn asked(value: &HeaderValue, headers: &HeaderMap) -> Option<Self> {
        let value = value.to_str().ok()?.trim();
        if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
            // A number that is too large for the type still asks for a very long delay.
            return Some(Self(Duration::from_secs(value.parse().unwrap_or(u64::MAX))));
        }
        let until = httpdate::parse_http_date(value).ok()?;
        let now = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?.trim()).ok()?;
        Some(Self(until.duration_since(now).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "Sat, 21 Nov 2026 12:00:00 GMT";

    fn parse(retry_after: &[u8], date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_bytes(retry_after).unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        RetryAfter::parse(&headers).map(|r| r.0)
    }

    #[test]
    fn seconds_count_from_the_answer() {
        for (value, secs) in
            [("0", 0), ("60", 60), (" 7 ", 7), ("007", 7), ("99999999999999999999", u64::MAX)]
        {
            assert_eq!(parse(value.as_bytes(), None), Some(Duration::from_secs(secs)), "{value:?}");
        }
    }

    #[test]
    fn a_date_counts_from_the_answers_own_date_not_from_our_clock() {
        let in_half_a_minute = "Sat, 21 Nov 2026 12:00:30 GMT";
        assert_eq!(parse(in_half_a_minute.as_bytes(), Some(NOON)), Some(Duration::from_secs(30)));
        assert_eq!(parse(in_half_a_minute.as_bytes(), None), None);
        assert_eq!(parse(in_half_a_minute.as_bytes(), Some("yesterday")), None);
        let past = "Sat, 21 Nov 2026 11:59:00 GMT";
        assert_eq!(parse(past.as_bytes(), Some(NOON)), Some(Duration::ZERO));
    }

    #[test]
    fn of_several_the_longest_delay_counts() {
        for values in [["1", "30"], ["30", "1"], ["30", "soon"]] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(RETRY_AFTER, HeaderValue::from_static(value));
            }
            assert_eq!(RetryAfter::parse(&headers), Some(RetryAfter(Duration::from_secs(30))), "{values:?}");
        }
    }

    #[test]
    fn garbage_asks_for_nothing() {
        for value in ["", "-1", "+1", "1.5", "1e3", "soon", "1 2", "0x10", "Sat, 99 Nov 2026 12:00:00 GMT"] {
            assert_eq!(parse(value.as_bytes(), Some(NOON)), None, "{value:?}");
        }
        assert_eq!(parse(b"\xff\xfe", Some(NOON)), None);
        assert_eq!(RetryAfter::parse(&HeaderMap::new()), None);
    }
}
