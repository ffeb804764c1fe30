//! Every deep stage, one a row: a key, a name, the minutes that it may take at most, and what it runs.
//!
//! CI runs a sample of some: `cargo xtask ci --deep --full` runs all of them.
//!
//! Seeds are fixed, so a run fails only because of a change. Campaigns draw others: `cargo xtask sim orders --seeds A..B`.
//! Seeds that are known to break a promise, and are not mended yet, stand in `docs/evidence.md`; the ranges end before them.

use super::stage::Deep;
use super::stage::What::{Corpora, Costs, Planted, Properties, Schedules, Secrets, Simulation, Tests};
use crate::planted::Bugs;

pub(super) const TABLE: &[Deep] = &[
    // These run beside those that compute. The README's main jobs are judged by what the sandboxes have in the end; then come
    // logins and crashes of real processes.
    Deep::new("soak", "a client under faults, and one that leaks", 10, Tests("steadfast-cli", "soak", ""))
        .waits(),
    Deep::new("demo", "demo", 10, Tests("steadfast-cli", "bin", "demo_keeps_its_promises")).waits(),
    Deep::new(
        "command",
        "replay and logins that take long",
        10,
        Tests(
            "steadfast-cli",
            "it",
            "all_rows_are_in_the_ground_truth an_order_that_never_arrived_is_placed_again \
             a_row_in_doubt_says_that_the_token a_service_that_does_not_answer_or_limits",
        ),
    )
    .waits(),
    Deep::new("kills", "kills while orders are sent", 15, Tests("steadfast", "kill", "")).waits(),
    Deep::new("secrets", "secrets in every sink", 10, Secrets).waits(),
    // These build programs of their own, while the others wait for theirs.
    Deep::new("costs", "instructions and allocations", 20, Costs),
    Deep::new("threads", "every order of threads", 20, Schedules),
    Deep::new("corpora", "fuzz corpora", 10, Corpora),
    Deep::new("planted", "planted bugs", 30, Planted(Bugs::All)).sampled(Planted(Bugs::Sample)),
    // The longest of the others come first, so that no core is idle in the end. Two models have two thirds of all states; the
    // plain tests explore their nearest ones.
    Deep::new("model", "order model", 20, Tests("steadfast-dedup", "lib", "model::")).sampled(Tests(
        "steadfast-dedup",
        "lib",
        "model:: --skip answers_that_forbid_a_resend --skip refusals_and_a_foreign_twin_change_nothing",
    )),
    Deep::new("properties", "long property tests", 20, Properties("10000")).sampled(Properties("3000")),
    Deep::new("identical", "ten thousand orders alike", 20, Tests("steadfast-dedup", "it", "k6_")),
    Deep::new("images", "crash images of the journal", 15, Tests("steadfast-dedup", "journal", "")),
    Deep::new("storms", "storms of faults", 15, Tests("steadfast", "it", "storm::")),
    Deep::new("sentences", "sentences of the spec", 5, Tests("steadfast-spec", "traceability", "")),
    Deep::new("policy", "retry against its oracle", 10, Tests("steadfast-retry", "it", "oracle::")),
    Deep::new("restarts", "limits, drops and restarts", 15, Tests("steadfast-limit", "it", "")),
    Deep::new("shared", "limits of processes that share a store", 10, Tests("steadfast-redis", "it", "")),
    Deep::new("owner", "who owns shared orders", 10, Tests("steadfast-redis", "lib", "model::")),
    Deep::new("requests", "a million requests", 10, Tests("steadfast-sandbox", "gateway", "robustness::")),
    Deep::new("memory", "a list of 200 MiB", 5, Tests("steadfast", "memory", "")),
    Deep::new("limits", "limits beside their peers", 15, Simulation("limits --sends 10000000")),
    Deep::new(
        "orders",
        "orders while answers get lost",
        10,
        Simulation("orders --seeds 0..6000 --demand-existence"),
    ),
    Deep::new(
        "plain",
        "orders that all must be resolved",
        5,
        Simulation("orders --plain --orders 20000 --rivals-every 0"),
    ),
    Deep::new(
        "unbounded",
        "orders that are later than assumed",
        5,
        Simulation("orders --unbounded --seeds 0..3000 --rivals-every 0"),
    ),
    Deep::new("scripts", "every script of two faults", 10, Simulation("scripts --faults 2")),
    Deep::new("catalogue", "every fault a hundred times", 10, Simulation("catalogue")),
    Deep::new("wire", "requests for each call", 5, Simulation("requests")),
    Deep::new(
        "pipe",
        "orders over broken connections",
        5,
        Simulation("orders --wire pipe --seeds 0..3000 --demand-existence"),
    ),
    // What the axes draw is in `crates/steadfast-verify/src/sim/axes.rs`. Lists of 100,000 records cost a hundred times as much as
    // all others together: campaigns draw them.
    Deep::new(
        "axes",
        "orders with all axes drawn",
        10,
        Simulation(
            "orders --axes intermediaries,placed-refusals,stray-answers,orphans,wall-clock,suspend,quotas,cached-lists,repeats \
             --seeds 0..16000 --floor 16000,300000 --rivals-every 0",
        ),
    ),
    // Strangers trade in the account, too, in half of the seeds.
    Deep::new(
        "tags",
        "orders with tags in a shared account",
        5,
        Simulation(
            "orders --shared --axes remarks,placed-refusals,repeats --seeds 0..2000 --floor 2000,30000 --rivals-every 0",
        ),
    ),
    // Its floor is the target only in an optimised build.
    Deep::new("throughput", "sandbox throughput", 10, Tests("steadfast-sandbox", "gateway", "throughput::"))
        .alone(),
];
