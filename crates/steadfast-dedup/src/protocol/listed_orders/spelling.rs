//! One identifier in several spellings.

use std::borrow::Cow;

/// Returns an identifier without what a service may lose when it converts it: leading zeros, spaces around it,
/// capitals.
pub(super) fn folded(order_id: &str) -> Cow<'_, str> {
    let text = order_id.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.trim_start_matches('0').into()
    } else if text.bytes().any(|b| b.is_ascii_uppercase()) {
        text.to_ascii_lowercase().into()
    } else {
        text.into()
    }
}
