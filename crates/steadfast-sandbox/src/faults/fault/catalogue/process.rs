//! Failures of processes and their journals (J), mistakes of callers (K), and leaks of secrets (M).
//!
//! The sandbox cannot inject them; a test triggers each of them.

use super::{Cover, Item};

const IMAGES: &str = "crates/steadfast-dedup/tests/journal/images.rs";
const DISKS: &str = "crates/steadfast-dedup/tests/journal/faults.rs";
const SECRETS: &str = "crates/steadfast/tests/secrets/main.rs";
const CANARY: &str = "crates/steadfast-auth/tests/it/canary.rs";

pub(super) const ITEMS: &[Item] = &[
    (
        "J1",
        "a kill at every system call",
        &[Cover::Test(
            "crates/steadfast/tests/kill/main.rs",
            "a_process_killed_at_any_touch_of_its_journal_places_nothing_twice",
        )],
    ),
    (
        "J2",
        "a power cut, with what was not synced lost",
        &[Cover::Test(IMAGES, "no_crash_loses_a_durable_send_or_invents_one")],
    ),
    (
        "J3",
        "a record that is torn, zero-filled or garbage at any byte",
        &[Cover::Test(IMAGES, "no_crash_loses_a_durable_send_or_invents_one")],
    ),
    (
        "J4",
        "unsynced writes that are kept out of order",
        &[Cover::Test(IMAGES, "no_crash_loses_a_durable_send_or_invents_one")],
    ),
    ("J5", "a flipped bit", &[Cover::Test(IMAGES, "no_flipped_bit_loses_a_durable_send_silently")]),
    (
        "J6",
        "no room at an append, a rename or a sync of the folder",
        &[
            Cover::Test(DISKS, "a_full_disk_is_told_by_its_name"),
            Cover::Test(DISKS, "no_room_for_a_successor_leaves_the_log_as_it_is"),
            Cover::Test(
                "crates/steadfast/tests/kill/main.rs",
                "a_process_killed_at_any_touch_of_its_journal_places_nothing_twice",
            ),
        ],
    ),
    (
        "J7",
        "a sync that fails, once or for ever",
        &[Cover::Test(DISKS, "the_first_failure_ends_a_log_and_it_is_never_tried_again")],
    ),
    (
        "J8",
        "writes that are short or interrupted",
        &[Cover::Test(DISKS, "short_and_interrupted_writes_are_finished")],
    ),
    (
        "J9",
        "a disk that takes long",
        &[Cover::Test(
            "crates/steadfast-dedup/tests/it/crash.rs",
            "a_disk_that_takes_long_leaves_the_order_unsent",
        )],
    ),
    (
        "J12",
        "two processes with one journal",
        &[
            Cover::Test(DISKS, "nobody_opens_a_log_twice"),
            Cover::Test(
                "crates/steadfast-dedup/tests/journal/files.rs",
                "a_second_one_is_refused_until_the_first_is_gone",
            ),
        ],
    ),
    (
        "J13",
        "a crash while a crash is recovered from",
        &[
            Cover::Test(IMAGES, "no_crash_loses_a_durable_send_or_invents_one"),
            Cover::Test(
                "crates/steadfast-dedup/tests/it/crash.rs",
                "a_crash_in_the_middle_of_a_recovery_is_one_more_doubt_and_no_send",
            ),
        ],
    ),
    (
        "J14",
        "a journal of another version",
        &[
            Cover::Test("crates/steadfast-dedup/src/journal/frame.rs", "other_versions_are_named"),
            Cover::Test("crates/steadfast-dedup/tests/journal/files.rs", "what_is_no_journal_is_left_alone"),
        ],
    ),
    (
        "J15",
        "a record that was written twice",
        &[Cover::Test(
            "crates/steadfast-dedup/src/journal/frame.rs",
            "a_torn_tail_is_dropped_and_a_second_copy_counts_once",
        )],
    ),
    (
        "J16",
        "ten million records",
        &[Cover::Test(
            "crates/steadfast-dedup/tests/journal/size.rs",
            "a_log_is_bounded_by_what_still_matters",
        )],
    ),
    (
        "J17",
        "a panic between the send and its outcome",
        &[
            Cover::Test(
                "crates/steadfast-dedup/tests/it/panics.rs",
                "j17_a_panic_above_the_guard_leaves_the_order_looked_for_and_unrepeated",
            ),
            Cover::Test(
                "crates/steadfast-dedup/tests/it/panics.rs",
                "j17_a_panic_of_the_transport_leaves_the_order_looked_for_and_unrepeated",
            ),
        ],
    ),
    (
        "K1",
        "a call that is dropped at any await",
        &[
            Cover::Test(
                "crates/steadfast-dedup/tests/it/probes.rs",
                "k1_dropped_at_every_await_an_order_is_placed_at_most_once",
            ),
            Cover::Test(
                "crates/steadfast/tests/it/dropping.rs",
                "doubtful_placements_dropped_anywhere_are_placed_at_most_once_each",
            ),
        ],
    ),
    (
        "K2",
        "a service that is ready and never called",
        &[Cover::Test(
            "crates/steadfast/tests/it/traps.rs",
            "a_service_that_is_ready_and_never_called_leaks_no_permit",
        )],
    ),
    (
        "K3",
        "storms of clones, and a service that has closed",
        &[
            Cover::Test("crates/steadfast-dedup/tests/it/callers.rs", "k3_a_storm_of_clones_is_one_account"),
            Cover::Test(
                "crates/steadfast-dedup/tests/it/callers.rs",
                "k3_an_order_for_a_service_that_has_closed_was_not_sent_and_leaves_no_doubt",
            ),
        ],
    ),
    (
        "K4",
        "a caller that repeats under the same name",
        &[Cover::Test("crates/steadfast-dedup/tests/it/cancellation.rs", "s77_same_intent_id")],
    ),
    (
        "K5",
        "a name that stands for another order",
        &[Cover::Test(
            "crates/steadfast/tests/it/client.rs",
            "an_intent_id_for_another_order_is_an_invalid_request",
        )],
    ),
    (
        "K6",
        "ten thousand identical orders",
        &[Cover::Test(
            "crates/steadfast-dedup/tests/it/figures.rs",
            "k6_ten_thousand_identical_orders_are_ten_thousand_orders",
        )],
    ),
    (
        "K7",
        "a form that breaks off",
        &[Cover::Test(
            "crates/steadfast-dedup/tests/it/callers.rs",
            "k7_a_form_that_breaks_off_is_not_sent_even_if_its_first_part_is_an_order",
        )],
    ),
    (
        "K8",
        "a shutdown with a queue",
        &[Cover::Test(
            "crates/steadfast-dedup/tests/it/callers.rs",
            "k8_a_shutdown_waits_for_calls_in_the_queue",
        )],
    ),
    ("M1", "logs of every crate at TRACE", &[Cover::Test(SECRETS, "a_trace_of_everything_holds_no_secret")]),
    (
        "M2",
        "`Debug`, `Display` and serde of public types",
        &[Cover::Test(CANARY, "no_piece_of_any_secret_is_shown_anywhere")],
    ),
    ("M3", "chains of errors", &[Cover::Test(CANARY, "no_piece_of_any_secret_is_shown_anywhere")]),
    ("M4", "panics and backtraces", &[Cover::Test(CANARY, "no_piece_of_any_secret_is_shown_anywhere")]),
    (
        "M5",
        "the bytes of journals",
        &[Cover::Test("crates/steadfast-cli/tests/it/leaks.rs", "the_journals_hold_no_piece_of_a_secret")],
    ),
    (
        "M6",
        "metrics, labels and fields of spans",
        &[
            Cover::Test(SECRETS, "a_trace_of_everything_holds_no_secret"),
            Cover::Test("crates/steadfast-retry/tests/it/span.rs", "no_secret_and_no_id_is_in_a_span"),
        ],
    ),
    (
        "M7",
        "a redirect to another host, port or scheme",
        &[Cover::Test(
            "crates/steadfast/tests/it/redirects.rs",
            "m7_no_redirect_is_followed_so_no_other_host_or_port_sees_the_header",
        )],
    ),
    ("M9", "the code of a login", &[Cover::Test(CANARY, "no_piece_of_any_secret_is_shown_anywhere")]),
    (
        "M10",
        "arguments and environment of processes",
        &[Cover::Test(
            "crates/steadfast-cli/tests/it/leaks.rs",
            "no_piece_of_a_secret_is_printed_logged_or_handed_to_a_child",
        )],
    ),
    (
        "M11",
        "core dumps",
        &[Cover::Test("crates/steadfast-cli/tests/it/leaks.rs", "no_command_leaves_a_core_dump")],
    ),
    (
        "M12",
        "a process's memory after its client was dropped",
        &[Cover::Test(
            "crates/steadfast/tests/secrets/memory.rs",
            "m12_copies_of_a_token_in_memory_are_counted_and_do_not_grow_with_use",
        )],
    ),
    (
        "M14",
        "tapes of failures",
        &[Cover::Test("crates/steadfast-verify/tests/orders.rs", "no_tape_holds_a_secret")],
    ),
];
