use std::time::Duration;

use http::{
    HeaderMap, HeaderName,
    header::{DATE, RETRY_AFTER},
};

/// The pause that an answer asks for: seconds, or a date less the answer's own date, so that no clock of ours is
/// compared with one of theirs. `None` for anything else.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let after = text(RETRY_AFTER)?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text| httpdate::parse_http_date(text).ok();
    date(after)?.duration_since(date(text(DATE)?)?).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn asked(retry_after_value: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(retry_after_value).unwrap());
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_str(date).unwrap());
        }
        retry_after(&headers).map(|after| after.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_understood_and_everything_else_is_not() {
        const NINE: &str = "Mon, 06 Jan 2025 09:00:00 GMT";
        const HALF_PAST: &str = "Mon, 06 Jan 2025 09:00:30 GMT";
        assert_eq!(asked("0", None), Some(0));
        assert_eq!(asked(" 60 ", None), Some(60));
        assert_eq!(asked(HALF_PAST, Some(NINE)), Some(30));
        assert_eq!(asked(NINE, Some(HALF_PAST)), None, "a date that is past asks for nothing");
        assert_eq!(asked(HALF_PAST, None), None, "a date means nothing without the answer's own");
        assert_eq!(asked("soon", Some(NINE)), None);
        assert_eq!(asked("-1", None), None);
        assert_eq!(asked("99999999999999999999", None), None);
    }
}
