use std::{
    fmt,
    io::{self, Write},
};

use serde::Serialize;

use crate::sim::{
    console::complain,
    orders::{args::Args, counts::Counts, oracle::Judgement, state::Run},
};

/// The output of `sim orders --json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    commit: &'a str,
    first_seed: u64,
    end_seed: u64,
    seeds: u64,
    orders: u64,
    went_in_doubt: u64,
    duplicated: u64,
    lost: u64,
    wrongly_claimed: u64,
    unresolved: u64,
    kept_waiting: u64,
    not_observed: u64,
    flagged_late: u64,
    naive_duplicated: u64,
    checks_once_duplicated: u64,
    /// How many orders the rivals were asked for.
    rival_orders: u64,
    placed: u64,
    denied: u64,
    undecided: u64,
    rejected: u64,
    gone: u64,
    stuck: u64,
    unflagged: u64,
    http_429: u64,
    crashes: u64,
    left_behind: u64,
    reported: u64,
    sent_after_crash: u64,
    attempts: u64,
    attempts_in_doubt_pct: f64,
    requests: u64,
    simulated_hours: f64,
    elapsed_s: f64,
    orders_per_s: f64,
    seeds_run_twice: u64,
    seeds_traced: u64,
    faults: &'a Counts,
    unresolved_for: &'a Counts,
    written: &'a Counts,
    adopted: u64,
    misled: u64,
    doubled: u64,
    cancels: u64,
    failures: usize,
}

impl<'a> Report<'a> {
    fn of(run: &'a Run) -> Self {
        let outcome = &run.outcome;
        let Judgement { orders, went_in_doubt, duplicated, lost, wrongly_claimed, .. } = outcome.ours;
        let ours = &outcome.ours;
        let seconds = outcome.elapsed.as_secs_f64();
        Self {
            schema_version: 1,
            commit: &run.commit,
            first_seed: run.first_seed,
            end_seed: run.next_seed,
            seeds: outcome.seeds,
            orders,
            went_in_doubt,
            duplicated,
            lost,
            wrongly_claimed,
            unresolved: ours.unresolved,
            kept_waiting: ours.kept_waiting,
            not_observed: ours.not_observed,
            flagged_late: ours.flagged,
            naive_duplicated: outcome.naive.duplicated,
            checks_once_duplicated: outcome.checks_once.duplicated,
            rival_orders: outcome.naive.orders,
            placed: ours.placed,
            denied: ours.denied,
            undecided: ours.undecided,
            rejected: ours.rejected,
            gone: ours.gone,
            stuck: ours.stuck,
            unflagged: ours.unflagged,
            http_429: ours.http_429,
            crashes: ours.crashes,
            left_behind: ours.left_behind,
            reported: ours.reported,
            sent_after_crash: ours.sent_after_crash,
            attempts: outcome.attempts,
            attempts_in_doubt_pct: rounded(
                100.0 * outcome.attempts_in_doubt as f64 / (outcome.attempts.max(1)) as f64,
            ),
            requests: outcome.requests,
            simulated_hours: rounded(outcome.simulated.as_secs_f64() / 3_600.0),
            elapsed_s: rounded(seconds),
            orders_per_s: rounded(orders as f64 / seconds.max(1e-9)),
            seeds_run_twice: outcome.run_twice,
            seeds_traced: outcome.traced,
            faults: &outcome.faults,
            unresolved_for: &outcome.reasons,
            written: &outcome.written,
            adopted: ours.adopted,
            misled: ours.misled,
            doubled: ours.doubled,
            cancels: outcome.cancels,
            failures: outcome.failures.len(),
        }
    }
}

/// Prints the outcome on standard output: a table, or JSON.
pub(crate) fn print(args: &Args, run: &Run) {
    let report = Report::of(run);
    let text = if args.json {
        // Texts and finite numbers under text keys always serialize to JSON.
        serde_json::to_string(&report).unwrap_or_default()
    } else {
        report.to_string()
    };
    // A closed standard output is no error.
    let _ = writeln!(io::stdout().lock(), "{text}");
    figures(&report);
}

/// Prints every figure that counts something, on a line for programs.
fn figures(report: &Report<'_>) {
    // See above.
    let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(report) else { return };
    let numbers =
        fields.iter().filter(|(name, value)| value.is_number() && name.as_str() != "schema_version");
    let words: String = numbers.map(|(name, value)| format!(" {name}={value}")).collect();
    complain(format_args!("figures:{words} seed_range={}..{}", report.first_seed, report.end_seed));
}

/// Prints on standard error the progress of each commit and mode of a campaign.
pub(crate) fn history(runs: &[Run]) {
    for Run { commit, modes, first_seed, next_seed, outcome, .. } in runs {
        let (ours, failures) = (&outcome.ours, outcome.failures.len());
        complain(format_args!(
            "campaign {commit}{modes}: seeds {first_seed}..{next_seed}, {} orders, {} in doubt, {} duplicated, {} \
             lost, {} wrongly claimed, {failures} failures, {} h",
            ours.orders,
            ours.went_in_doubt,
            ours.duplicated,
            ours.lost,
            ours.wrongly_claimed,
            rounded(outcome.simulated.as_secs_f64() / 3_600.0),
        ));
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} orders of {} sessions (seeds {}..{}), {} h simulated in {} s: {} orders/s",
            self.orders,
            self.seeds,
            self.first_seed,
            self.end_seed,
            self.simulated_hours,
            self.elapsed_s,
            self.orders_per_s
        )?;
        writeln!(
            f,
            "{} sends of orders, {} % of them in doubt; {} faults; {} seeds run twice\n",
            self.attempts,
            self.attempts_in_doubt_pct,
            self.faults.sum(),
            self.seeds_run_twice
        )?;
        let rows = [
            ("orders", self.orders, "wanted"),
            ("placed", self.placed, "exist, each counted once"),
            ("went_in_doubt", self.went_in_doubt, "met an answer that says nothing"),
            ("duplicated", self.duplicated, "exist beyond those that were wanted"),
            ("lost", self.lost, "told of, and do not exist"),
            ("wrongly_claimed", self.wrongly_claimed, "told of, and belong to another caller"),
            ("denied", self.denied, "exist, and their caller was told that they do not"),
            ("undecided", self.undecided, "their caller was told neither that nor anything else that helps"),
            ("adopted", self.adopted, "told of, and placed alike by another program on the account"),
            ("misled", self.misled, "told of by an answer that may have been another order's"),
            ("unresolved", self.unresolved, "their caller was told that this is unknown"),
            ("kept_waiting", self.kept_waiting, "of these, because others of their key kept getting lost"),
            ("not_observed", self.not_observed, "looked for beyond the bound, not there, not sent again"),
            ("rejected", self.rejected, "refused for certain, or never sent"),
            ("gone", self.gone, "their caller went away first"),
            ("stuck", self.stuck, "still in doubt after all was healed"),
            ("flagged_late", self.flagged_late, "reported by the client as late or too many"),
            ("unflagged", self.unflagged, "late or too many, and not reported"),
            ("http_429", self.http_429, "refused for quota"),
            ("left_behind", self.left_behind, "sent by a process that died before their callers knew"),
            ("reported", self.reported, "of these, named by the next process"),
            ("sent_after_crash", self.sent_after_crash, "of these, sent again, or sent by a recovery"),
        ];
        for (name, count, meaning) in rows {
            writeln!(f, "{name:<18}{count:>12}  {meaning}")?;
        }
        for (reason, times) in self.unresolved_for.iter() {
            writeln!(f, "  unresolved: {reason:<22}{times:>6}")?;
        }
        write!(
            f,
            "\nof {} orders in the same sessions, a client that retries placed {} twice or more, one that checks once {}",
            self.rival_orders, self.naive_duplicated, self.checks_once_duplicated
        )
    }
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
