//! Every planted bug, one a row: its name, and who has to find it. The first that does, has found it.

use super::detector::Detector;

/// A bug, by the name that `STEADFAST_PLANTED` takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bug {
    pub(super) name: &'static str,
    pub(super) detectors: &'static [Detector],
}

const fn bug(name: &'static str, detectors: &'static [Detector]) -> Bug {
    Bug { name, detectors }
}

const fn tests(package: &'static str, target: &'static str, names: &'static [&'static str]) -> Detector {
    Detector::Tests { package, target, names }
}

const fn auth(names: &'static [&'static str]) -> Detector {
    tests("steadfast-auth", "it", names)
}

const fn auth_lib(names: &'static [&'static str]) -> Detector {
    tests("steadfast-auth", "lib", names)
}

const fn dedup(names: &'static [&'static str]) -> Detector {
    tests("steadfast-dedup", "it", names)
}

const fn dedup_lib(names: &'static [&'static str]) -> Detector {
    tests("steadfast-dedup", "lib", names)
}

const fn cli(names: &'static [&'static str]) -> Detector {
    tests("steadfast-cli", "it", names)
}

const fn journal(names: &'static [&'static str]) -> Detector {
    tests("steadfast-dedup", "journal", names)
}

const fn limit(names: &'static [&'static str]) -> Detector {
    tests("steadfast-limit", "it", names)
}

const fn limit_lib(names: &'static [&'static str]) -> Detector {
    tests("steadfast-limit", "lib", names)
}

const fn retry(names: &'static [&'static str]) -> Detector {
    tests("steadfast-retry", "it", names)
}

const fn sandbox(names: &'static [&'static str]) -> Detector {
    tests("steadfast-sandbox", "gateway", names)
}

const fn steadfast(names: &'static [&'static str]) -> Detector {
    tests("steadfast", "it", names)
}

const fn outage(names: &'static [&'static str]) -> Detector {
    tests("steadfast", "outage", names)
}

const fn traps(names: &'static [&'static str]) -> Detector {
    Detector::Traps(names)
}

/// Sessions in which answers get lost, judged by the gateway's books.
const ORDERS: Detector = Detector::Simulation("orders --first --rivals-every 0 --seeds 0..40");
/// The same, where nothing bounds how late an order may be.
const LATE: Detector = Detector::Simulation("orders --first --rivals-every 0 --unbounded --seeds 0..30");
/// The same, over hyper and connections that break anywhere.
const PIPE: Detector = Detector::Simulation("orders --first --rivals-every 0 --wire pipe --seeds 0..30");
/// The invariants over the history that the ledger keeps of itself.
const TRACES: Detector =
    Detector::Simulation("orders --first --rivals-every 0 --trace-every 1 --seeds 0..30");
/// The wire trace against what the policy predicts.
const POLICY: Detector = retry(&["oracle::"]);

pub(super) const TABLE: &[Bug] = &[
    // Orders: what is known of them, and when one is sent again.
    bug("resend-without-check", &[ORDERS]),
    bug("one-immediate-check", &[ORDERS]),
    bug("no-settle", &[ORDERS]),
    bug("settled-from-our-timeout", &[ORDERS, dedup(&["timing::", "chaos::"])]),
    bug("unresolved-resent", &[dedup(&["s38_"])]),
    bug("opaque-resent", &[dedup(&["s13_", "s14_", "s20_"])]),
    bug("endless-resends", &[dedup(&["s04_"])]),
    bug("old-order-resent", &[dedup(&["s16_"])]),
    bug("resent-for-nobody", &[TRACES, dedup(&["cancellation::"])]),
    bug("resent-after-restart", &[dedup(&["crash::"])]),
    bug("grant-not-judged-again", &[dedup(&["registry::"])]),
    bug("send-by-ignored", &[dedup(&["s09_", "policies::", "timing::", "race::"])]),
    bug("dropped-send-forgotten", &[dedup(&["cancellation::", "attacks::"])]),
    bug("halt-ignored", &[dedup(&["halting::"])]),
    bug("poller-stays-dead", &[dedup(&["panics::"])]),
    bug("slow-look-first", &[dedup(&["reads::"])]),
    bug("read-left-open", &[dedup(&["panics::"])]),
    bug("conflict-believed", &[dedup(&["o06_"])]),
    bug("unlisted-acks-believed", &[dedup(&["o06_"])]),
    bug("mismatched-acks-believed", &[dedup(&["o06_"])]),
    bug("disputed-acks-believed", &[dedup(&["o06_"])]),
    bug("refusal-checked-elsewhere", &[dedup(&["o05_"])]),
    bug("disputed-refusals-believed", &[dedup(&["o05_"])]),
    bug("own-watches-forgotten", &[dedup(&["o05_"])]),
    bug("unconfirmed-refusals-believed", &[dedup(&["o05_"])]),
    bug("recalled-orders-unawaited", &[dedup(&["o06_"])]),
    bug("late-orders-unreported", &[LATE]),
    bug("endless-connection-ends", &[dedup(&["o01_"])]),
    bug("foreign-error-settles", &[dedup(&["o02_"])]),
    bug("refusal-believed", &[dedup(&["o05_"])]),
    bug("refusal-checked-at-once", &[dedup(&["o05_"])]),
    bug("refused-order-forgotten", &[dedup(&["o05_"])]),
    bug("rejected-order-forgotten", &[dedup(&["o05_"])]),
    bug("dead-token-believed", &[dedup(&["o05_"])]),
    bug("suspend-not-counted", &[dedup(&["o04_", "s83_"])]),
    bug("late-change-over-newer", &[steadfast(&["typed::o01_"])]),
    bug("late-ack-takes-twins", &[dedup(&["o06_"])]),
    // Orders: what a list proves.
    bug("endless-lists", &[dedup(&["o08_"])]),
    bug("spelling-trusted", &[dedup(&["o09_"])]),
    bug("no-data-is-absence", &[dedup(&["s26_"]), ORDERS]),
    bug("unreadable-list-is-clean", &[dedup(&["s29_", "reads::"])]),
    bug("failed-list-is-clean", &[dedup(&["s34_", "reads::"])]),
    bug("cached-list-is-clean", &[dedup(&["reads::", "attacks::"])]),
    bug("partial-list-is-absence", &[dedup(&["s28_"])]),
    bug("stale-list-is-absence", &[dedup(&["s30_"])]),
    bug("young-acks-in-canary", &[dedup(&["s30_"])]),
    bug("session-ignored", &[dedup(&["s36_"])]),
    bug("cache-hit-is-clean", &[dedup(&["o12_"])]),
    bug("baseline-tried-once", &[dedup(&["o10_"])]),
    // Orders: whose a listed order is.
    bug("no-owner-wait", &[dedup(&["s61_", "s65_"]), ORDERS]),
    bug("no-cohort", &[TRACES, dedup(&["s64_"])]),
    bug("newest-first", &[dedup(&["s63_", "s65_"]), ORDERS]),
    bug("baseline-at-read-start", &[dedup(&["s31_"]), ORDERS]),
    bug("evidence-at-read-end", &[dedup(&["registry::"])]),
    bug("sessions-share-lists", &[dedup(&["owners::"])]),
    bug("look-alikes-taken", &[dedup(&["owners::"])]),
    bug("overnight-answers-forgotten", &[dedup_lib(&["registry::"])]),
    bug("overnight-losses-forgotten", &[dedup_lib(&["registry::"])]),
    bug("likeness-takes-news", &[dedup_lib(&["registry::"])]),
    bug("loose-match-claims", &[dedup(&["matching::"])]),
    bug("no-loose-veto", &[ORDERS, dedup(&["matching::"])]),
    bug("day-by-wall-clock", &[dedup_lib(&["trading_day::"]), dedup(&["o03_"])]),
    bug("names-end-at-midnight", &[dedup(&["o03_"])]),
    bug("taint-lasts-all-day", &[dedup(&["o13_"])]),
    bug("unknown-day-trusted", &[dedup(&["o03_"])]),
    bug("late-refusals-not-awaited", &[dedup(&["o05_"])]),
    bug("leg-names-trusted", &[dedup(&["o05_", "s48_"])]),
    bug("refused-name-stays-free", &[dedup(&["o05_"])]),
    // The journal.
    bug("refusals-unjournaled", &[dedup(&["crash::o05_"])]),
    bug("sent-before-journal", &[dedup(&["crash::"])]),
    bug("journal-fails-open", &[dedup(&["crash::"])]),
    bug("journal-not-synced", &[journal(&["images::"])]),
    bug("journal-written-once", &[journal(&["images::"])]),
    bug("checksum-unchecked", &[journal(&["images::"])]),
    bug("damage-is-a-torn-end", &[journal(&["images::"])]),
    bug("displaced-journal-trusted", &[journal(&["o07_"])]),
    bug("lost-journal-begun-anew", &[journal(&["o07_"])]),
    bug("older-journal-believed", &[journal(&["o07_"])]),
    bug("journal-link-taken", &[journal(&["o07_"])]),
    // What an answer proves.
    bug("502-is-refusal", &[ORDERS]),
    bug("429-is-doubt", &[POLICY]),
    bug("every-400-is-refusal", &[retry(&["classify::"]), dedup(&["s20_"])]),
    bug("lost-is-not-sent", &[ORDERS]),
    bug("incomplete-is-not-sent", &[PIPE]),
    bug("timeout-is-not-sent", &[retry(&["timeout::"])]),
    bug("any-5xx-is-the-gateways", &[retry(&["o02_"]), dedup(&["o02_"])]),
    bug("placeholder-is-identifier", &[cli(&["o06_"])]),
    bug("orderly-close", &[outage(&["o01_a_send_given_up"])]),
    bug("proxy-ends-with-us", &[steadfast(&["ended::o01_"])]),
    bug("given-up-stays-open", &[outage(&["o01_a_full_send_buffer"])]),
    // Retry.
    bug("doubt-repeated", &[POLICY]),
    bug("refusal-repeated", &[POLICY]),
    bug("sixth-send", &[POLICY]),
    bug("unverifiable-refusal-repeated", &[retry(&["o05_"]), auth(&["o05_"])]),
    bug("no-backoff", &[PIPE, POLICY]),
    bug("retry-after-ignored", &[POLICY]),
    bug("deadline-slept-through", &[POLICY]),
    bug("date-ignored", &[POLICY]),
    bug("permit-not-predicted", &[POLICY]),
    bug("budget-overdrawn", &[POLICY]),
    bug("persistent-rule-ignored", &[POLICY]),
    bug("repeats-multiply", &[retry(&["retry::"])]),
    // What other stacks got wrong: each test of `traps.rs` fails by one of these.
    bug("clone-in-call", &[traps(&["the_service_that_was_polled_ready_is_the_one_that_is_called"])]),
    bug(
        "kept-ready",
        &[traps(&[
            "a_readied_service_that_is_never_called_holds_nothing_while_a_repeat_waits",
            "a_layer_that_waits_is_always_ready_and_asks_for_readiness_after_the_wait",
        ])],
    ),
    bug(
        "call-outlives-caller",
        &[traps(&[
            "a_call_dropped_at_any_poll_leaves_nothing_behind",
            "a_permit_taken_in_poll_ready_comes_back_when_the_call_is_dropped",
        ])],
    ),
    bug("permit-of-first-send", &[traps(&["every_repeat_takes_a_permit_of_its_own"])]),
    bug("header-of-first-send", &[traps(&["a_repeat_is_sent_with_a_header_of_its_own"])]),
    bug(
        "queue-time-counted",
        &[traps(&[
            "time_in_a_queue_is_not_counted_as_slowness_of_the_server",
            "time_until_the_transport_is_ready_is_not_counted_either",
        ])],
    ),
    bug("local-refusal-repeated", &[traps(&["a_local_refusal_is_not_repeated"])]),
    bug("broken-is-repeated", &[traps(&["an_incomplete_message_is_not_taken_for_not_sent"])]),
    bug("jitter-truncated", &[traps(&["whole_second_delays_have_jitter_too"])]),
    bug("stream-repeated-empty", &[traps(&["a_stream_is_never_sent_again_as_an_empty_body"])]),
    bug("form-shown", &[traps(&["debug_output_of_a_request_holds_no_form"])]),
    // Limits.
    bug("logged-at-send", &[limit(&["windows::"])]),
    bug("no-margin", &[limit(&["admission::"])]),
    bug("float-stamps", &[limit_lib(&["universal::"])]),
    bug("one-window-only", &[limit(&["windows::", "admission::"])]),
    bug("one-zone-only", &[limit(&["scopes::"])]),
    bug("repeats-uncounted", &[limit(&["layer::"]), ORDERS]),
    bug("lost-slots-freed", &[ORDERS]),
    bug("dropped-send-refunded", &[limit(&["permits::"])]),
    bug("dropped-grant-leaks", &[limit(&["drops::", "dropped_anywhere::"])]),
    // Not all of `losses::`: who waits for a slot there waits for ever.
    bug("cancels-held-by-lost-slots", &[limit(&["losses::", "cancels::"])]),
    bug("no-reserve", &[limit(&["lanes::", "cancels::"])]),
    bug("lanes-swapped", &[limit(&["lanes::", "cancels::"])]),
    bug("no-probe", &[limit(&["freeze::"])]),
    bug("pause-shorter-than-asked", &[limit(&["freeze::", "layer::"])]),
    bug("tokens-mixed", &[limit(&["scopes::", "permits::"])]),
    bug("address-per-account", &[limit(&["scopes::"])]),
    bug("grant-kept-for-nobody", &[limit(&["absent::"])]),
    bug("absent-calls-hold", &[limit(&["absent::"])]),
    bug("orphans-forgotten", &[limit(&["losses::"])]),
    bug("limit-not-learned", &[limit(&["lowered::"])]),
    bug("restart-by-wall-clock", &[limit(&["cold_start::"])]),
    bug("stale-journal-trusted", &[limit(&["cold_start::"])]),
    // Tokens and logins.
    bug("old-header-again", &[auth(&["t09_", "refresh::"])]),
    bug("same-token-again", &[auth(&["t08_", "refresh::"])]),
    bug("login-per-waiter", &[auth(&["t04_"])]),
    bug("failed-renewal-displaces", &[auth(&["t01_"])]),
    bug("late-refusal-counts", &[auth(&["t03_"])]),
    bug("error-remembered", &[auth(&["t02_"])]),
    bug("step-used-twice", &[auth(&["t16_"])]),
    bug("skew-ignored", &[auth(&["t17_"])]),
    bug("budget-not-stored", &[auth(&["shared_store::"])]),
    bug("stale-login-overwrites", &[auth(&["t15_"])]),
    bug("token-logged", &[auth(&["canary::"])]),
    bug("failed-login-per-waiter", &[auth(&["t05_"])]),
    bug("dropped-caller-stops-login", &[auth(&["t06_"])]),
    bug("age-by-monotonic-clock", &[auth(&["t07_"])]),
    bug("body-lost-on-resend", &[auth(&["t10_"])]),
    bug("roll-over-missed", &[auth(&["t11_"])]),
    bug("one-auth-error", &[auth(&["t12_"])]),
    bug("forged-callback-believed", &[auth(&["t19_"])]),
    bug("short-secret-refused", &[auth_lib(&["t18_"])]),
    bug("date-taken-for-instant", &[auth_lib(&["t20_"])]),
    bug("owner-unchecked", &[auth(&["x03_"])]),
    bug("links-followed", &[auth(&["x03_"])]),
    bug("last-credentials-counted", &[auth(&["t21_"])]),
    bug("spellings-are-accounts", &[auth(&["t21_"])]),
    bug("colon-token-taken", &[auth(&["t22_"])]),
    bug("interruption-is-failure", &[auth(&["t25_requests"])]),
    bug("other-parameters-judged", &[auth(&["t24_other"])]),
    bug("silent-hold-the-door", &[auth(&["t24_silent"])]),
    bug("accept-spins", &[auth(&["t24_accept"])]),
    bug("port-guessed", &[auth(&["t24_a_port"])]),
    bug("second-refusal-surfaces", &[auth(&["o10_"])]),
    bug("age-by-wall-clock", &[auth(&["t27_"]), auth_lib(&["t27_"])]),
    bug("keys-are-accounts", &[auth(&["t21_several"])]),
    bug("doubt-uncounted", &[auth(&["t21_unknown"])]),
    // The sandbox.
    bug("admin-trusts-pages", &[sandbox(&["x04_"])]),
    bug("slow-bodies-hold", &[sandbox(&["x05_a_slow"])]),
    bug("idle-connections-stay", &[sandbox(&["x05_idle"])]),
    bug("refused-token-taken", &[auth(&["t23_"])]),
    // The command.
    bug("environment-target-ignored", &[cli(&["c01_a_service"])]),
    bug("real-run-unasked", &[cli(&["c01_without_a_terminal"])]),
    // Not all of `c02_`: one of them has so many rows that they would leave for longer than a detector may take.
    bug("interrupt-without-halt", &[cli(&["c02_rows"])]),
    bug("events-unread", &[cli(&["c03_an_event"])]),
    bug("service-text-raw", &[cli(&["x01_a_vile"])]),
    bug("results-in-place", &[cli(&["c04_results_are_not"])]),
    bug("kept-token-unused", &[cli(&["c05_what_login"])]),
    bug("error-hides-cause", &[steadfast(&["c06_"])]),
    bug("refused-port-silent", &[cli(&["c07_a_refused"])]),
    bug("hyphened-expiry-refused", &[cli(&["c08_an_expiry"])]),
    bug("secrets-name", &[dedup(&["x01_"])]),
    bug("corrections-unshown", &[cli(&["c03_an_identifier_given_twice"])]),
    bug("clear-text-through-proxy", &[steadfast(&["x02_"])]),
    bug("localhost-resolved", &[tests("steadfast", "lib", &["x02_"])]),
    bug("dead-token-tried-on", &[cli(&["c03_a_dead_token"])]),
    bug("spelled-secrets-shown", &[cli(&["x01_a_token_in_another"])]),
    bug("journal-doubt-unshown", &[cli(&["c03_a_lock_removed"])]),
    bug("other-file-attached", &[cli(&["o07_equal_rows"])]),
    bug("other-journal-unseen", &[cli(&["o07_a_file_is_not_placed_again"])]),
    bug("settled-row-sent-anew", &[cli(&["a_row_whose_first_order_is_settled"])]),
];
