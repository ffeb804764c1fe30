//! The instruments by groups: reads that need no session.

use serde_json::json;

use crate::wire::{
    page::Page,
    scrips::{SCRIPS, Scrip, group, scrip},
};

/// Returns the instruments of the group that a path ends with.
pub(crate) fn symbols(path: &str) -> Page {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    let records: Vec<Scrip> = (0..SCRIPS).filter(|&number| group(number) == name).map(scrip).collect();
    if records.is_empty() { Page::no_data() } else { Page::ok(json!(records)) }
}

/// Returns the names of the groups.
pub(crate) fn symbol_groups() -> Page {
    let mut groups: Vec<_> = (0..SCRIPS).map(group).collect();
    groups.sort_unstable();
    groups.dedup();
    let groups: Vec<_> = { groups.into_iter().enumerate() }
        .map(|(place, name)| json!({"name": name, "sortOrder": place}))
        .collect();
    Page::ok(json!({"version": 1, "updated": true, "symbolStore": groups}))
}
