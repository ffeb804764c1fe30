//! Every deep stage, one a row: a key, a name, what runs, and for how many minutes at most.
//!
//! Seeds are fixed, so a run fails only because of a change. Campaigns draw others: `cargo xtask sim orders --seeds A..B`.
//! Seeds that are known to break a promise, and are not mended yet, stand in `docs/evidence.md`; the ranges end before them.

use super::Deep;
use super::what::{Target, Tests, What};

const fn lib(package: &'static str, names: &'static str) -> What {
    What::Tests(Tests { package, target: Target::Lib, names, alone: false })
}

const fn bin(package: &'static str, names: &'static str) -> What {
    What::Tests(Tests { package, target: Target::Bin, names, alone: false })
}

const fn test(package: &'static str, binary: &'static str, names: &'static str) -> What {
    What::Tests(Tests { package, target: Target::Test(binary), names, alone: false })
}

const fn schedules(package: &'static str, names: &'static str) -> What {
    What::Schedules { package, names }
}

pub(crate) const TABLE: &[Deep] = &[
    Deep::new("corpora", "fuzz corpora", What::Corpora, 5),
    Deep::new("properties", "long property tests", What::Properties, 20),
    Deep::new("model", "order model", lib("steadfast-dedup", "model::"), 15),
    Deep::new("identical", "ten thousand identical orders", test("steadfast-dedup", "it", "k6_"), 10),
    Deep::new("images", "crash images of the journal", test("steadfast-dedup", "journal", ""), 15),
    Deep::new("kills", "kills while orders are on their way", test("steadfast", "kill", ""), 10),
    Deep::new("storms", "storms of faults", test("steadfast", "it", "storm::"), 15),
    Deep::new("policy", "retry against its oracle", test("steadfast-retry", "it", "oracle::"), 5),
    Deep::new("restarts", "limits, drops and restarts", test("steadfast-limit", "it", ""), 15),
    Deep::new(
        "limiter-threads",
        "every order of threads in the limiter",
        schedules("steadfast-limit", "hand_off::schedules"),
        10,
    ),
    Deep::new(
        "order-threads",
        "every order of threads around orders in doubt",
        schedules("steadfast-dedup", "monitor::schedules"),
        15,
    ),
    Deep::new(
        "login-threads",
        "every order of threads around a login",
        schedules("steadfast-auth", "single_flight::schedules"),
        10,
    ),
    Deep::new("secrets", "secrets in every sink", What::Secrets, 5),
    Deep::new("requests", "a million requests", test("steadfast-sandbox", "gateway", "robustness::"), 10),
    Deep::new("memory", "a list of 200 MiB", test("steadfast", "memory", ""), 5),
    // The README's main jobs, judged by what the sandboxes have in the end; then logins and crashes of real processes.
    Deep::new("demo", "demo", bin("steadfast-cli", "demo_keeps_its_promises"), 10),
    Deep::new("command", "replay, logins and crashes of the command", test("steadfast-cli", "it", ""), 15),
    Deep::new("soak", "a client under faults, and one that leaks", test("steadfast-cli", "soak", ""), 5),
    // Its floor is the target only in an optimised build; alone, because it is to have a core to itself.
    Deep::new(
        "throughput",
        "sandbox throughput",
        What::Tests(Tests {
            package: "steadfast-sandbox",
            target: Target::Test("gateway"),
            names: "throughput::",
            alone: true,
        }),
        10,
    ),
    Deep::new(
        "limits",
        "limits beside their peers",
        What::Simulation(&["limits", "--sends", "10000000", "--minutes", "3"]),
        15,
    ),
    Deep::new(
        "orders",
        "orders while answers get lost",
        What::Simulation(&["orders", "--seeds", "0..16000", "--seconds", "400", "--demand-existence"]),
        10,
    ),
    Deep::new(
        "plain",
        "orders that all must be resolved",
        What::Simulation(&[
            "orders",
            "--plain",
            "--orders",
            "20000",
            "--seconds",
            "40",
            "--rivals-every",
            "0",
        ]),
        5,
    ),
    Deep::new(
        "unbounded",
        "orders that are later than anybody assumes",
        What::Simulation(&[
            "orders",
            "--unbounded",
            "--seeds",
            "0..8000",
            "--seconds",
            "120",
            "--rivals-every",
            "0",
        ]),
        5,
    ),
    Deep::new(
        "scripts",
        "every script of two faults over one order",
        What::Simulation(&["scripts", "--faults", "2"]),
        10,
    ),
    Deep::new(
        "catalogue",
        "every fault of the gateway's, a hundred times",
        What::Simulation(&["catalogue"]),
        10,
    ),
    Deep::new("wire", "requests on the wire for each call", What::Simulation(&["requests"]), 5),
    Deep::new(
        "pipe",
        "orders over connections that break anywhere",
        What::Simulation(&[
            "orders",
            "--wire",
            "pipe",
            "--seeds",
            "0..9000",
            "--seconds",
            "120",
            "--floor",
            "1000,20000",
            "--demand-existence",
        ]),
        5,
    ),
    // What the axes draw is in `crates/steadfast-verify/src/sim/axes.rs`.
    Deep::new(
        "axes",
        "orders in worlds that were once taken for impossible",
        What::Simulation(&[
            "orders",
            "--axes",
            "intermediaries,placed-refusals,stray-answers,orphans,wall-clock,suspend,quotas,cached-lists",
            "--seeds",
            "0..16000",
            "--rivals-every",
            "0",
        ]),
        5,
    ),
    Deep::new("planted", "planted bugs", What::Planted, 30),
    Deep::new("mutants", "a sample of mutants", What::Mutants, 6),
    Deep::new("costs", "instructions and allocations", What::Costs, 15),
];
