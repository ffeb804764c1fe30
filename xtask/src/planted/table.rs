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

/// Sessions in which answers get lost, judged by the gateway's books.
const ORDERS: Detector = Detector::Simulation("orders --first --rivals-every 0 --seeds 0..40");
/// The same, with a process that dies.
const CRASHES: Detector = Detector::Simulation("orders --first --rivals-every 0 --crashes --seeds 0..30");
/// The same, where nothing bounds how late an order may be.
const LATE: Detector = Detector::Simulation("orders --first --rivals-every 0 --unbounded --seeds 0..30");
/// The same, where every order can be resolved.
const PLAIN: Detector = Detector::Simulation("orders --first --rivals-every 0 --plain --seeds 0..30");
/// The same, over hyper and connections that break anywhere.
const PIPE: Detector = Detector::Simulation("orders --first --rivals-every 0 --wire pipe --seeds 0..30");
/// Our limiter in front of every gateway, behind every network.
const LIMITS: Detector = Detector::Simulation("limits --quick --only steadfast");
/// The wire trace against what the policy predicts.
const POLICY: Detector = retry(&["oracle::"]);

pub(super) const TABLE: &[Bug] = &[
    // Orders: what is known of them, and when one is sent again.
    bug("resend-without-check", &[ORDERS]),
    bug("one-immediate-check", &[ORDERS]),
    bug("no-settle", &[ORDERS]),
    bug("settled-from-our-timeout", &[ORDERS, dedup(&["s11"])]),
    bug("unresolved-resent", &[ORDERS, dedup(&["s38_", "s26_"])]),
    bug("opaque-resent", &[dedup(&["s13_", "s14_", "s20_"])]),
    bug("endless-resends", &[dedup(&["s04_"])]),
    bug("old-order-resent", &[dedup(&["s16_"])]),
    bug("resent-for-nobody", &[dedup(&["cancellation::"])]),
    bug("resent-after-restart", &[CRASHES]),
    bug("grant-not-judged-again", &[dedup(&["s08_"])]),
    bug("send-by-ignored", &[dedup(&["s09_", "policies::", "timing::", "race::"])]),
    bug("dropped-send-forgotten", &[dedup(&["cancellation::", "attacks::"])]),
    bug("late-orders-unreported", &[LATE]),
    // Orders: what a list proves.
    bug("no-data-is-absence", &[ORDERS, dedup(&["s26_"])]),
    bug("unreadable-list-is-clean", &[ORDERS, dedup(&["s29_", "reads::"])]),
    bug("failed-list-is-clean", &[ORDERS, dedup(&["s34_", "reads::"])]),
    bug("cached-list-is-clean", &[dedup(&["reads::", "attacks::"])]),
    bug("partial-list-is-absence", &[ORDERS, dedup(&["s28_"])]),
    bug("stale-list-is-absence", &[ORDERS, dedup(&["s30_"])]),
    bug("young-acks-in-canary", &[PLAIN, dedup(&["s30_"])]),
    bug("session-ignored", &[ORDERS, dedup(&["s36_"])]),
    // Orders: whose a listed order is.
    bug("no-owner-wait", &[ORDERS, dedup(&["s61_"])]),
    bug("no-cohort", &[ORDERS, dedup(&["s64_"])]),
    bug("newest-first", &[ORDERS, dedup(&["s65_"])]),
    bug("baseline-at-read-start", &[ORDERS, dedup(&["s31_"])]),
    bug("evidence-at-read-end", &[ORDERS, dedup(&["reads::", "invariants::"])]),
    bug("sessions-share-lists", &[ORDERS, dedup(&["owners::"])]),
    bug("look-alikes-taken", &[ORDERS, dedup(&["owners::"])]),
    bug("loose-match-claims", &[ORDERS, dedup(&["matching::"])]),
    bug("no-loose-veto", &[ORDERS, dedup(&["matching::"])]),
    // The journal.
    bug("sent-before-journal", &[CRASHES, dedup(&["crash::"])]),
    bug("journal-fails-open", &[dedup(&["crash::"])]),
    bug("journal-not-synced", &[journal(&["images::"])]),
    bug("journal-written-once", &[journal(&["images::"])]),
    bug("checksum-unchecked", &[journal(&["images::"])]),
    bug("damage-is-a-torn-end", &[journal(&["images::"])]),
    // What an answer proves.
    bug("502-is-refusal", &[ORDERS]),
    bug("429-is-doubt", &[POLICY]),
    bug("every-400-is-refusal", &[ORDERS]),
    bug("lost-is-not-sent", &[ORDERS]),
    bug("incomplete-is-not-sent", &[PIPE]),
    bug("timeout-is-not-sent", &[retry(&["timeout::"])]),
    // Retry.
    bug("doubt-repeated", &[ORDERS]),
    bug("refusal-repeated", &[POLICY]),
    bug("sixth-send", &[POLICY]),
    bug("no-backoff", &[POLICY]),
    bug("retry-after-ignored", &[POLICY]),
    bug("deadline-slept-through", &[POLICY]),
    bug("repeats-multiply", &[retry(&["retry::"])]),
    // Limits.
    bug("logged-at-send", &[limit(&["windows::"])]),
    bug("no-margin", &[LIMITS, limit(&["windows::"])]),
    bug("float-stamps", &[limit_lib(&["universal::"])]),
    bug("one-window-only", &[limit(&["windows::", "admission::"])]),
    bug("one-zone-only", &[limit(&["scopes::"])]),
    bug("repeats-uncounted", &[ORDERS, limit(&["layer::"])]),
    bug("lost-slots-freed", &[ORDERS, limit(&["losses::"])]),
    bug("dropped-send-refunded", &[ORDERS, limit(&["permits::"])]),
    bug("dropped-grant-leaks", &[limit(&["drops::", "dropped_anywhere::"])]),
    bug("cancels-held-by-lost-slots", &[limit(&["losses::", "cancels::"])]),
    bug("no-reserve", &[limit(&["lanes::", "cancels::"])]),
    bug("lanes-swapped", &[limit(&["lanes::", "cancels::"])]),
    bug("no-probe", &[limit(&["freeze::"])]),
    bug("pause-shorter-than-asked", &[limit(&["freeze::", "layer::"])]),
    bug("tokens-mixed", &[limit(&["scopes::", "permits::"])]),
    bug("address-per-account", &[limit(&["scopes::"])]),
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
];
