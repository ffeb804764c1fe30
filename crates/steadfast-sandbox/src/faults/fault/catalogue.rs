mod process;

use super::Fault;

/// One item of the fault catalogue, and its coverage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogueRow {
    /// Its name: `C3`.
    pub id: &'static str,
    /// The problem it describes.
    pub what: &'static str,
    /// Its coverage; at least one for every item.
    pub covered: Vec<Cover>,
}

/// How an item of the catalogue is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cover {
    /// The sandbox injects it.
    Fault(Fault),
    /// An axis of the interpretation stands for it.
    Axis(&'static str),
    /// The test with this name in this file checks or triggers it.
    Test(&'static str, &'static str),
}

/// Returns the catalogue's items of the groups A to C, E to K, and M, with what covers each beside faults.
///
/// Group D is about HTTP/2, which is not spoken; L waits for the sidecar; J, K and M are covered by tests, not by
/// the sandbox.
#[must_use]
pub fn catalogue() -> Vec<CatalogueRow> {
    let row = |&(id, what, others): &Item| {
        let faults = Fault::ALL.iter().filter(|fault| fault.covers().contains(&id)).copied();
        CatalogueRow { id, what, covered: faults.map(Cover::Fault).chain(others.iter().copied()).collect() }
    };
    ITEMS.iter().chain(process::ITEMS).map(row).collect()
}

/// An item's name, its description, and what covers it beside faults.
type Item = (&'static str, &'static str, &'static [Cover]);

const ITEMS: &[Item] = &[
    (
        "A1",
        "a name that is not found",
        &[Cover::Test(
            "crates/steadfast/tests/it/wire_faults.rs",
            "a_name_that_is_not_found_or_a_refused_connection_leaves_nothing_in_doubt",
        )],
    ),
    (
        "A2",
        "a name that is found late",
        &[Cover::Test(
            "crates/steadfast/tests/it/wire_faults.rs",
            "a_connection_that_is_made_late_carries_the_order_once",
        )],
    ),
    (
        "A3",
        "a connection that is refused",
        &[
            Cover::Test(
                "crates/steadfast/tests/it/wire_faults.rs",
                "a_name_that_is_not_found_or_a_refused_connection_leaves_nothing_in_doubt",
            ),
            Cover::Test("crates/steadfast/tests/it/tcp.rs", "nothing_listens_and_nothing_is_in_doubt"),
        ],
    ),
    (
        "A4",
        "a connection that is never made",
        &[Cover::Test(
            "crates/steadfast/tests/it/wire_faults.rs",
            "a_connection_that_is_never_made_leaves_nothing_in_doubt",
        )],
    ),
    ("A5", "a connection that is accepted and reset", &[]),
    (
        "A8",
        "no connection is free",
        &[Cover::Test(
            "crates/steadfast/tests/it/wire_faults.rs",
            "a_connection_that_is_never_made_leaves_nothing_in_doubt",
        )],
    ),
    ("B1", "an idle connection ends", &[]),
    ("B2", "a connection ends as the request is written", &[]),
    ("B3", "a reset before the request is read", &[]),
    ("B4", "a reset after the request was read, without an order", &[]),
    ("B5", "a reset after the order was placed", &[]),
    ("B6", "half of the connection ends", &[]),
    ("B8", "a reset after k bytes of the answer", &[]),
    ("B9", "a reset after k bytes of the request", &[]),
    ("B10", "a connection that swallows everything", &[]),
    ("B11", "a connection that is accepted late", &[]),
    ("B12", "an answer byte by byte", &[]),
    ("B14", "`connection: close` on each answer", &[]),
    ("B15", "a silent end after some requests", &[]),
    ("B16", "every connection is reset at once", &[]),
    ("C1", "the status line is cut", &[]),
    ("C2", "the headers are cut", &[]),
    ("C3", "the body is shorter than announced, and the connection ends", &[]),
    ("C4", "the body is shorter than announced, and nothing follows", &[]),
    ("C5", "the body is longer than announced", &[]),
    ("C6", "a body of announced length zero", &[]),
    ("C7", "two lengths", &[]),
    ("C8", "a length that is negative, or too large for a number", &[]),
    ("C10", "chunks without an end", &[]),
    ("C11", "a bad chunk size", &[]),
    ("C13", "a body that ends with its connection, cut", &[]),
    ("C14", "101 headers", &[]),
    ("C15", "a header of 500 KB", &[]),
    ("C16", "a bad header name, a NUL, a folded header", &[]),
    ("C17", "bare LF", &[]),
    ("C18", "bytes that are no HTTP/1", &[]),
    ("C19", "statuses that do not exist", &[]),
    ("C20", "storms of 1xx, an unsolicited 101", &[]),
    ("C21", "204 and 304 with a body", &[]),
    ("C25", "a body without an end", &[]),
    ("E1", "200 with an empty body", &[]),
    ("E2", "200 with HTML", &[]),
    ("E3", "200 with cut JSON", &[]),
    ("E4", "invalid UTF-8", &[]),
    ("E5", "`s` that is missing or unknown", &[]),
    ("E6", "success without `d`", &[]),
    ("E7", "an order without its identifier", &[]),
    ("E8", "an error with status 200", &[]),
    ("E11", "`no-data` with data", &[]),
    ("E13", "ten thousand arrays in each other", &[]),
    ("E14", "numbers beyond every word", &[]),
    ("E15", "half characters, a NUL, a text of a megabyte", &[]),
    ("E17", "a list of 50,000 orders", &[]),
    ("E19", "400 with the internal-error text", &[]),
    ("E20", "400 with another text", &[]),
    ("F1", "504, placed", &[]),
    ("F2", "504, not placed", &[]),
    ("F3", "504, placed later", &[]),
    ("F5", "500, 502, 503, placed", &[]),
    ("F6", "a 200 that is lost", &[]),
    ("F7", "a list that lags", &[Cover::Axis("visibility-lag")]),
    ("F10", "an order that ends at once", &[]),
    (
        "F11",
        "identical twins",
        &[Cover::Test(
            "crates/steadfast/tests/it/virtual_time.rs",
            "twins_in_a_storm_of_504s_end_with_one_order_for_each_caller_that_was_told_of_one",
        )],
    ),
    (
        "F13",
        "near twins",
        &[Cover::Test("crates/steadfast/tests/it/wire_faults.rs", "near_twins_are_told_apart")],
    ),
    ("F15", "no list for as long as anybody asks", &[]),
    (
        "G1",
        "401 after 24 hours",
        &[Cover::Test(
            "crates/steadfast/tests/spec/section_5.rs",
            "spec_5_client_after_24_hours_it_logs_in_again_by_itself",
        )],
    ),
    (
        "G2",
        "401 in the middle of a burst",
        &[Cover::Test(
            "crates/steadfast-auth/tests/it/refresh.rs",
            "fifty_requests_refused_in_mid_burst_make_one_login_and_all_succeed",
        )],
    ),
    ("G3", "401 for another reason than the token", &[]),
    ("G4", "a login that is refused, fails or hangs", &[]),
    ("G5", "a login that brings the same token", &[]),
    ("G7", "an `expires_in` that nobody can mean", &[Cover::Axis("expires-in")]),
    ("G9", "the old token dies before the new one is used", &[Cover::Axis("old-token")]),
    (
        "G10",
        "the eleventh session",
        &[Cover::Test(
            "crates/steadfast-sandbox/tests/spec/section_5_sessions.rs",
            "spec_5_the_eleventh_session_evicts_the_oldest",
        )],
    ),
    (
        "G12",
        "the OTP zone is the address's",
        &[Cover::Test(
            "crates/steadfast-sandbox/tests/spec/section_8_scopes.rs",
            "spec_8_the_otp_quota_belongs_to_the_ip_address",
        )],
    ),
    ("G13", "clocks of authenticators", &[]),
    ("G14", "403", &[]),
    ("G15", "401 again after a renewal", &[]),
    (
        "H1",
        "429 on request n + 1",
        &[Cover::Test(
            "crates/steadfast-sandbox/tests/spec/section_8.rs",
            "spec_8_each_zone_admits_its_limit_and_refuses_the_next",
        )],
    ),
    ("H2", "429 that nobody caused", &[]),
    ("H3", "every `Retry-After`", &[Cover::Axis("retry-after")]),
    ("H4", "429 on the list", &[]),
    (
        "H5",
        "bunching",
        &[Cover::Test(
            "crates/steadfast-sandbox/tests/gateway/interpretations.rs",
            "a_gateway_with_jitter_counts_requests_where_they_did_not_arrive",
        )],
    ),
    ("H6", "both sides of a border", &[Cover::Axis("counting")]),
    (
        "H7",
        "request 401 of a minute",
        &[Cover::Test(
            "crates/steadfast-sandbox/tests/spec/section_8.rs",
            "spec_8_general_also_has_a_minute_ceiling",
        )],
    ),
    ("H10", "a minute of 429", &[]),
    (
        "I1",
        "a wall clock that is a day off",
        &[Cover::Test(
            "crates/steadfast-auth/tests/it/recovery.rs",
            "a_clock_that_is_set_by_a_day_in_operation_costs_no_call_and_locks_nothing",
        )],
    ),
    (
        "I2",
        "a clock that is set back",
        &[Cover::Test(
            "crates/steadfast-auth/tests/it/renewal.rs",
            "a_clock_that_is_off_or_set_right_later_does_not_move_the_end",
        )],
    ),
    (
        "I4",
        "a token that ends while a request is repeated",
        &[Cover::Test(
            "crates/steadfast/tests/it/wire_faults.rs",
            "a_token_that_dies_while_a_read_is_repeated_is_an_answer_and_no_loop",
        )],
    ),
    (
        "I5",
        "a second that is repeated or left out",
        &[Cover::Test(
            "crates/steadfast-auth/tests/it/renewal.rs",
            "a_clock_that_is_off_or_set_right_later_does_not_move_the_end",
        )],
    ),
    ("I6", "timers that are 50 ms late", &[]),
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;
    use crate::SpecReading;

    /// The items of the catalogue, group by group.
    const NAMES: &[(char, &[u8])] = &[
        ('A', &[1, 2, 3, 4, 5, 8]),
        ('B', &[1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 14, 15, 16]),
        ('C', &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 25]),
        ('E', &[1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 14, 15, 17, 19, 20]),
        ('F', &[1, 2, 3, 5, 6, 7, 10, 11, 13, 15]),
        ('G', &[1, 2, 3, 4, 5, 7, 9, 10, 12, 13, 14, 15]),
        ('H', &[1, 2, 3, 4, 5, 6, 7, 10]),
        ('I', &[1, 2, 4, 5, 6]),
        ('J', &[1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 17]),
        ('K', &[1, 2, 3, 4, 5, 6, 7, 8]),
        ('M', &[1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14]),
    ];

    #[test]
    fn every_item_of_the_groups_is_covered_and_no_other_is_claimed() {
        let items: BTreeSet<String> = NAMES
            .iter()
            .flat_map(|(group, numbers)| numbers.iter().map(move |number| format!("{group}{number}")))
            .collect();
        let rows = catalogue();
        assert_eq!(rows.iter().map(|row| row.id.to_owned()).collect::<BTreeSet<_>>(), items);
        assert_eq!(rows.len(), items.len());
        for row in &rows {
            assert!(!row.covered.is_empty(), "{} ({}) is covered by nothing", row.id, row.what);
        }
        for fault in Fault::ALL {
            for id in fault.covers() {
                assert!(items.contains(*id), "{fault} claims {id}");
            }
        }
    }

    #[test]
    fn every_axis_and_every_test_that_a_row_names_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for row in catalogue() {
            for cover in row.covered {
                match cover {
                    Cover::Test(file, name) => {
                        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
                        assert!(text.contains(&format!("fn {name}(")), "{}: {file} has no {name}", row.id);
                    }
                    Cover::Axis(name) => {
                        let known = SpecReading::AXES.iter().any(|axis| axis.name == name);
                        assert!(known, "{}: no axis is named {name}", row.id);
                    }
                    Cover::Fault(_) => {}
                }
            }
        }
    }
}
