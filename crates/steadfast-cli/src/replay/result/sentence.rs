use steadfast::dedup::Resolution;

use crate::{
    placement::means_rejected,
    readable::{identifier, readable},
    reason::is_for_a_person,
};

/// Returns advice for reasons that wait for a person.
pub(super) fn way_out(reason: &str) -> &'static str {
    match is_for_a_person(reason) {
        true => "; once you have found it or not, say so with `steadfast orders rule`",
        false => "",
    }
}

/// Appends the orders that it may be.
pub(super) fn with_candidates(text: String, candidates: &[String]) -> String {
    let candidates: Vec<_> = candidates.iter().map(|id| identifier(id)).collect();
    if candidates.is_empty() { text } else { format!("{text}; it may be {}", candidates.join(", ")) }
}

/// Appends the service's own text.
pub(super) fn with_said(text: &str, said: Option<&str>) -> String {
    said.map_or_else(|| text.to_owned(), |said| format!("{text}; the service said: {said}"))
}

/// Says more than the answer to the row's send. A rejected order was processed too, but is no position.
pub(super) fn found_out(resolution: &Resolution) -> Option<String> {
    match resolution {
        Resolution::Recovered { status: Some(status), .. } => {
            Some(format!("recovered; the list shows it as {}", readable(status)))
        }
        Resolution::Attached { .. } => Some("placed by an earlier run; nothing was sent now".to_owned()),
        _ => None,
    }
}

/// Returns true if the order was found, and the list shows it as rejected.
pub(super) fn is_rejected(resolution: &Resolution) -> bool {
    matches!(resolution, Resolution::Recovered { status: Some(status), .. } if means_rejected(status))
}

pub(super) fn word(resolution: &Resolution) -> &'static str {
    match resolution {
        Resolution::Recovered { .. } => "recovered",
        Resolution::Resent => "resent",
        Resolution::Attached { .. } => "attached",
        _ => "resolved",
    }
}
