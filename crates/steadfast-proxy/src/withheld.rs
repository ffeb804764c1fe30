//! Whether every order is withheld, as the client knows it.

use steadfast::{
    Client,
    call::{causes, one_line},
    dedup::OrderWithheld,
};

/// Returns why no order leaves, with the path of a journal that has failed; `None` if nothing is known to withhold all.
pub(crate) fn trouble(client: &Client) -> Option<String> {
    client.tracker().withholds_all().map(|why| format!("no order leaves: {}", one_line(causes(&why))))
}

/// True if the next `Date` of the service may be the cure.
pub(crate) fn is_of_day(client: &Client) -> bool {
    matches!(client.tracker().withholds_all(), Some(OrderWithheld::DayDisputed))
}
