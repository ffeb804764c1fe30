//! The names of rows' orders, in the journal and at a sandbox.

const FIRST: &str = "line-";
const SECOND: &str = "-again";

/// Returns the name of a row's order.
pub(crate) fn of_first(line: u64) -> String {
    format!("{FIRST}{line}")
}

/// Returns the name of the order that is placed for a row whose first one was not found.
pub(crate) fn of_second(line: u64) -> String {
    format!("{FIRST}{line}{SECOND}")
}

/// Returns the line of the row behind an order's name.
pub(crate) fn line_of(name: &str) -> Option<u64> {
    first_of(name).strip_prefix(FIRST)?.parse().ok()
}

/// Returns the name of the first order of a row, whichever of its two is named.
pub(crate) fn first_of(name: &str) -> &str {
    name.trim_end_matches(SECOND)
}

/// True if a name is that of a row's second order.
pub(crate) fn is_second(name: &str) -> bool {
    name.ends_with(SECOND)
}
