//! The reasons why an order has no certain end, in words.

use crate::words::REASONS;

/// Returns the word of a reason, with its meaning.
pub(crate) fn told(reason: &str) -> String {
    let meant = REASONS.iter().find(|(word, _)| *word == reason);
    meant.map_or_else(|| reason.to_owned(), |(word, sentence)| format!("{word}: {sentence}"))
}

/// Returns true for reasons that no later run or read can resolve on the same day: a person has to rule on the order.
pub(crate) fn is_for_a_person(reason: &str) -> bool {
    matches!(
        reason,
        "accepted_unknown_id"
            | "no_baseline"
            | "near_match"
            | "ambiguous_owner"
            | "list_not_monotone"
            | "session_changed"
            | "epoch_changed"
            | "uncalibrated"
            | "resends_exhausted"
            | "tainted"
    )
}
