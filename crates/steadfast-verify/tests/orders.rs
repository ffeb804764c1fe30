//! The orders simulation as its users start it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed assumption ends the test")]

use std::process::{Command, Output};

use steadfast_sandbox::Sandbox;

fn sim(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steadfast-sim")).arg("orders").args(words).output().unwrap()
}

fn report(words: &[&str]) -> serde_json::Value {
    let output = sim(words);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problems}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(report: &serde_json::Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name} is missing"))
}

fn deep() -> bool {
    std::env::var_os("STEADFAST_DEEP").is_some()
}

#[test]
fn within_the_bound_no_order_is_duplicated_lost_or_misclaimed() {
    let orders = if deep() { "50000" } else { "300" };
    let report = report(&["--json", "--orders", orders, "--rivals-every", "1"]);
    for name in ["duplicated", "lost", "wrongly_claimed", "denied", "undecided", "stuck", "http_429"] {
        assert_eq!(count(&report, name), 0, "{name}");
    }
    // The same faults are not harmless: they make other clients place orders twice.
    assert!(count(&report, "naive_duplicated") > count(&report, "checks_once_duplicated"));
    assert!(count(&report, "checks_once_duplicated") > 0);
    assert!(count(&report, "went_in_doubt") * 10 > count(&report, "orders") * 2);
}

#[test]
fn the_client_reports_every_duplicate_beyond_the_bound() {
    let orders = if deep() { "20000" } else { "150" };
    let report = report(&["--json", "--unbounded", "--orders", orders, "--rivals-every", "0"]);
    assert!(count(&report, "duplicated") > 0, "later than the bound, duplicates cannot be helped");
    assert_eq!(count(&report, "unflagged"), 0);
    assert!(count(&report, "flagged_late") >= count(&report, "duplicated"));
}

#[test]
fn a_broken_promise_fails_the_run_and_can_be_reproduced() {
    // A client that assumes no lateness at all, in a world that is late by up to 15 s.
    let folder = std::env::temp_dir().join(format!("steadfast-sim-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let tape = folder.join("late.tape");
    let late = "order 4 0 = 1\nplace.fault 4 1 = 3\nplace.late 4 1 = 9000\n";
    std::fs::write(&tape, late).unwrap();
    let tape = tape.to_str().unwrap();

    let kept = sim(&["--tape", tape]);
    assert_eq!(kept.status.code(), Some(0), "{}", String::from_utf8_lossy(&kept.stderr));
    let broken = sim(&["--tape", tape, "--assume-lateness", "0"]);
    assert_eq!(broken.status.code(), Some(1));
    let words = String::from_utf8(broken.stderr).unwrap();
    assert!(words.contains("send 1: placement.504-late"), "{words}");
    assert!(
        words.contains("exists 9000 ms after it arrived") && words.contains("broken: duplicated 1"),
        "{words}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tapes_of_former_failures_keep_every_promise() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tapes");
    let mut tapes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let modes = text.lines().find_map(|line| line.strip_prefix("# modes: ")).unwrap_or_default();
        let mut words = vec!["--tape", path.to_str().unwrap()];
        words.extend(modes.split_whitespace());
        let output = sim(&words);
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{}: {told}", path.display());
        // The tape names faults by their index in the catalogue, so their names must still be the same.
        let meant =
            text.lines().filter_map(|line| line.strip_prefix('#').filter(|line| line.starts_with("  ")));
        let told = told.lines().take_while(|line| *line != "what came of it:");
        assert_eq!(told.collect::<Vec<_>>(), meant.collect::<Vec<_>>(), "{}", path.display());
        tapes += 1;
    }
    assert!(tapes > 0, "no tape in {folder}");
}

#[test]
fn no_tape_holds_a_secret() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tapes");
    // The secrets of the sandboxes that tapes are played against or were recorded from.
    let secrets: Vec<String> = (0..1_000)
        .flat_map(|seed| {
            let sandbox = Sandbox::builder().seed(seed).build().unwrap();
            let (ours, other) = (sandbox.credentials(), sandbox.other_credentials());
            [ours, other].into_iter().flat_map(|facts| {
                [
                    facts.api_key,
                    facts.client_secret,
                    facts.access_token,
                    facts.password,
                    facts.totp_secret,
                    facts.client_id,
                ]
            })
        })
        .collect();
    assert!(secrets.iter().all(|secret| secret.len() >= 4), "{secrets:?}");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(secrets.iter().all(|secret| !text.contains(secret.as_str())), "{}", path.display());
        // It cannot: every line that is no comment is the name of a choice and numbers.
        let choices = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        for line in choices {
            let mut words = line.split_whitespace().skip(1).filter(|word| *word != "=");
            assert!(words.all(|word| word.parse::<u64>().is_ok()), "{}: {line}", path.display());
        }
    }
}

#[test]
fn each_commit_has_seeds_of_its_own_and_always_the_same() {
    let first = |commit| {
        let words =
            ["--json", "--seeds-of-commit", "--commit", commit, "--orders", "1", "--rivals-every", "0"];
        count(&report(&words), "first_seed")
    };
    assert_eq!(first("0123456789ab"), first("0123456789ab-dirty"));
    assert_ne!(first("0123456789ab"), first("0123456789ac"));
}

#[test]
fn promises_hold_when_connections_break_at_any_byte() {
    let orders = if deep() { "20000" } else { "150" };
    let words = ["--json", "--wire", "pipe", "--orders", orders, "--seeds", "100..", "--rivals-every", "0"];
    let report = report(&words);
    assert_eq!(count(&report, "duplicated") + count(&report, "lost") + count(&report, "wrongly_claimed"), 0);
    assert!(count(&report, "seeds_run_twice") > 0, "the same seed takes the same course twice");
    assert!(count(&report, "seeds_traced") > 0, "the invariants are checked over the tracker's history");
}

/// Bytes that a kernel delivers of a closed connection become an order. The simulation distinguishes a transport that
/// ends its connections from one that only claims to.
#[test]
fn o01_orphans_of_a_transport_that_only_says_it_ends_are_found() {
    let words = ["--axes", "orphans", "--wire", "pipe", "--rivals-every", "0", "--seeds", "222..223"];
    let kept = sim(&words);
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    let broken = sim(&[&words[..], &["--orderly-close", "--first"]].concat());
    assert_eq!(broken.status.code(), Some(1));
    let told = String::from_utf8_lossy(&broken.stderr);
    assert!(told.contains("duplicated"), "{told}");
}

#[test]
fn no_order_of_a_dead_process_is_resent_or_forgotten() {
    let orders = if deep() { "20000" } else { "150" };
    let words = ["--json", "--crashes", "--orders", orders, "--without", "swarm.refused-share"];
    let report = report(&words);
    assert!(count(&report, "crashes") > 0 && count(&report, "left_behind") > 0);
    assert_eq!(count(&report, "reported"), count(&report, "left_behind"));
    assert_eq!(count(&report, "sent_after_crash") + count(&report, "duplicated"), 0);
}

#[test]
fn a_client_that_sends_twice_fails_the_run() {
    let words = ["--canary", "sends-twice", "--seeds", "0..40", "--rivals-every", "0", "--first"];
    let output = sim(&words);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("duplicated"));
}

#[test]
fn a_campaign_goes_on_with_the_seeds_that_it_has_not_run() {
    let folder = std::env::temp_dir().join(format!("steadfast-campaign-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("campaign");
    let slice = |seeds| {
        report(&["--json", "--state", file.to_str().unwrap(), "--seeds", seeds, "--rivals-every", "0"])
    };
    assert_eq!(count(&slice("7..9"), "seeds"), 2);
    let whole = slice("7..11");
    assert_eq!((count(&whole, "seeds"), count(&whole, "end_seed")), (4, 11));
    std::fs::write(&file, "{\"version\":1,\"ru").unwrap();
    let torn = sim(&["--state", file.to_str().unwrap()]);
    assert!(!torn.status.success() && String::from_utf8_lossy(&torn.stderr).contains("damaged"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_run_that_its_time_has_cut_short_fails() {
    let words = |floor| ["--seeds", "0..2", "--rivals-every", "0", "--floor", floor];
    assert!(sim(&words("2,2")).status.success());
    for floor in ["3,2", "2,100000"] {
        let output = sim(&words(floor));
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("too little was run"), "{floor}");
    }
}

#[test]
fn the_same_seeds_give_the_same_figures() {
    let figures = || {
        let mut report = report(&["--json", "--seeds", "40..42", "--rivals-every", "2"]);
        for name in ["elapsed_s", "orders_per_s"] {
            report.as_object_mut().unwrap().remove(name).expect("a figure of this machine's");
        }
        report
    };
    assert_eq!(figures(), figures());
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    for words in [["--seeds", "7..7"], ["--seeds", "x"], ["--tape", "/nowhere.tape"]] {
        let output = sim(&words);
        assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn a_tape_that_tries_nothing_is_refused_by_name() {
    let folder = std::env::temp_dir().join(format!("steadfast-sim-tapes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let tape = folder.join("bad.tape");
    for (text, why) in [
        ("", "nothing was tried"),
        ("# an order was here\nplace.fault 4 1 = 3\n", "`place.fault 4 1 = 3` was met as 0"),
        ("no.such.choice 0 0 = 1\norder 4 0 = 1\norder.shape 4 = 60\n", "tape line 3"),
    ] {
        std::fs::write(&tape, text).unwrap();
        let output = sim(&["--tape", tape.to_str().unwrap()]);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(words.contains(why) && words.contains("bad.tape: "), "{words}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    let missing = String::from_utf8(sim(&["--tape", "missing.tape"]).stderr).unwrap();
    assert!(missing.contains("--tape missing.tape: "), "{missing}");
}

/// Without its command line options a tape might keep every promise, and would be stored as one that does.
#[test]
fn a_tape_says_what_it_was_run_with() {
    let folder = std::env::temp_dir().join(format!("steadfast-sim-modes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let words = ["orders", "--canary", "sends-twice", "--seed", "0", "--rivals-every", "0"];
    let mut run = Command::new(env!("CARGO_BIN_EXE_steadfast-sim"));
    let broken = run.args(words).env("TMPDIR", &folder).env("TEMP", &folder).output().unwrap();
    assert_eq!(broken.status.code(), Some(1));
    let tape = folder.join("steadfast-orders-0.tape");
    let text = std::fs::read_to_string(&tape).unwrap();
    assert!(text.lines().any(|line| line == "# modes: --canary sends-twice"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("#  order ")), "{text}");

    let tape = tape.to_str().unwrap();
    let same = sim(&["--tape", tape, "--canary", "sends-twice"]);
    let other = sim(&["--tape", tape]);
    let says =
        |output: &Output| String::from_utf8_lossy(&output.stderr).contains("is of a run with --canary");
    assert_eq!((same.status.code(), says(&same)), (Some(1), false));
    assert_eq!((other.status.code(), says(&other)), (Some(0), true));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_run_of_nothing_is_refused() {
    for words in [["--orders", "0"], ["--minutes", "0"], ["--seconds", "0"]] {
        let output = sim(&words);
        let problems = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && problems.contains(words[0]), "{problems}");
    }
    for words in [["catalogue", "--times"], ["catalogue", "--days"], ["requests", "--orders"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_steadfast-sim")).args(words).arg("0").output().unwrap();
        let problems = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && problems.contains(words[1]), "{problems}");
    }
}

/// A seed that a broader run traced must also be traced when run alone, so that findings of the invariants can be
/// repeated.
#[test]
fn a_single_seed_is_traced_whatever_its_number_is() {
    let alone = report(&["--json", "--seed", "3", "--rivals-every", "0"]);
    assert_eq!(count(&alone, "seeds_traced"), 1);
    let untraced = report(&["--json", "--seed", "3", "--rivals-every", "0", "--trace-every", "0"]);
    assert_eq!(count(&untraced, "seeds_traced"), 0);
}
