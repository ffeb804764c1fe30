//! Every figure, one a row: what is promised, which stages measure it, and when it holds.

use super::judge::{Judgement, Sums, count};
use super::row::{By, Row};
use crate::deep::Figures;
use crate::tidy::{self, Repository};

pub(super) const TABLE: &[Row] = &[
    Row {
        id: "F1",
        what: "simulated orders over the whole stack, in process and over real hyper connections",
        target: "≥ 20,000 seeds, ≥ 300,000 orders: 0 duplicated, 0 lost, 0 wrongly claimed",
        aim: "≥ 100,000,000 orders, ≥ 10,000,000 in doubt: 0, 0, 0",
        stages: &["orders", "pipe"],
        judge: By::Figures(orders),
    },
    Row {
        id: "F2",
        what: "simulated trading time",
        target: "≥ 2,000 h",
        aim: "≥ 10,000 h",
        stages: &["orders", "pipe"],
        judge: By::Figures(trading_time),
    },
    Row {
        id: "F3",
        what: "orders without a verdict although the faults healed; unresolved ones with the axes at their defaults",
        target: "0; 0",
        aim: "0",
        stages: &["orders", "pipe", "plain"],
        judge: By::Figures(verdicts),
    },
    Row {
        id: "F4",
        what: "orders later than the lateness bound",
        target: "every duplicate flagged",
        aim: "every duplicate flagged",
        stages: &["unbounded"],
        judge: By::Figures(lateness),
    },
    Row {
        id: "F5",
        what: "planted bugs found",
        target: "all, ≥ 40",
        aim: "",
        stages: &["planted"],
        judge: By::Figures(planted),
    },
    Row {
        id: "F6",
        what: "faults of the gateway's, from the catalogue's groups A, B, C and E to I, that fired at least 100 times",
        target: "all",
        aim: "",
        stages: &["catalogue"],
        judge: By::Figures(catalogue),
    },
    Row {
        id: "F7",
        what: "every script of at most two faults over one order",
        target: "0 violations",
        aim: "every script of three",
        stages: &["scripts"],
        judge: By::Figures(scripts),
    },
    Row {
        id: "F8",
        what: "the journal's crash images; kills at system calls",
        target: "≥ 1,000,000; ≥ 300; 0 orders duplicated or forgotten",
        aim: "≥ 100,000,000 images; ≥ 20,000 kills",
        stages: &["images", "kills"],
        judge: By::Figures(crashes),
    },
    Row {
        id: "F9",
        what: "states of the order protocol's own code, explored exhaustively",
        target: "≥ 250,000, 0 violations; each rule taken out gives its counterexample",
        aim: "≥ 10,000,000",
        stages: &["model"],
        judge: By::Figures(states),
    },
    Row {
        id: "F10",
        what: "interleavings of threads tried; models",
        target: "≥ 100,000; ≥ 4",
        aim: "≥ 100,000,000",
        stages: &["limiter-threads", "order-threads", "login-threads"],
        judge: By::Figures(schedules),
    },
    Row {
        id: "F11",
        what: "fuzz targets; inputs of their corpora replayed",
        target: "≥ 7; 0 fail",
        aim: "≥ 100,000,000 executions, 0 open",
        stages: &["corpora"],
        judge: By::Figures(corpora),
    },
    Row {
        id: "F12",
        what: "mutants caught, of a fixed sample",
        target: "all that fit into 6 min",
        aim: "≥ 97 % in limit, dedup, auth and journal, ≥ 90 % overall",
        stages: &["mutants"],
        judge: By::Figures(mutants),
    },
    Row {
        id: "F13",
        what: "429s and windows too full where none is promised",
        target: "0 in ≥ 10,000,000 sends",
        aim: "0 in ≥ 10,000,000 sends",
        stages: &["limits"],
        judge: By::Figures(limits),
    },
    Row {
        id: "F14",
        what: "sinks searched for secrets; leaks",
        target: "≥ 12; 0",
        aim: "0",
        stages: &["secrets"],
        judge: By::Figures(secrets),
    },
    Row {
        id: "F15",
        what: "requests on the wire for each call: without faults; with 30 % of answers a 5xx",
        target: "≤ 1.05; reported",
        aim: "a curve",
        stages: &["wire"],
        judge: By::Figures(wire),
    },
    Row {
        id: "F16",
        what: "sentences of the specification with a gateway test and a client test, or the reason why not",
        target: "all",
        aim: "",
        stages: &[],
        judge: By::Files(|workspace| {
            let repository = Repository::read(&workspace.root)?;
            Ok(tidy::coverage(&repository).map_or_else(
                || Judgement::unmeasured("the table of sentences"),
                |coverage| Judgement::by(coverage.is_complete(), coverage.to_string()),
            ))
        }),
    },
    Row {
        id: "F17",
        what: "uses of `unsafe` in our crates",
        target: "0",
        aim: "",
        stages: &[],
        judge: By::Files(|workspace| {
            let repository = Repository::read(&workspace.root)?;
            let uses = tidy::unsafe_code(&repository);
            Ok(Judgement::by(uses == 0, uses.to_string()))
        }),
    },
    Row {
        id: "F18",
        what: "a client's process that trades with a faulty gateway: growth of memory, descriptors, threads and tasks",
        target: "none beyond the bounds in ≥ 50 s; a client that leaks is found",
        aim: "",
        stages: &["soak"],
        judge: By::Figures(soak),
    },
];

fn orders(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let stages = ["orders", "pipe"];
    let [seeds, orders, doubts] = ["seeds", "orders", "went_in_doubt"].map(|name| sums.of(&stages, name));
    let [duplicated, lost, claimed] =
        ["duplicated", "lost", "wrongly_claimed"].map(|name| sums.of(&stages, name));
    let value = format!(
        "{} seeds, {} orders, {} in doubt: {duplicated}, {lost}, {claimed}",
        count(seeds),
        count(orders),
        count(doubts),
    );
    let holds = duplicated + lost + claimed == 0.0 && seeds >= 20_000.0 && orders >= 300_000.0;
    sums.judge(holds, value)
}

fn trading_time(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let hours = sums.of(&["orders", "pipe"], "simulated_hours");
    sums.judge(hours >= 2_000.0, format!("{} h", count(hours)))
}

fn verdicts(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let stages = ["orders", "pipe"];
    let undecided = sums.of(&stages, "undecided") + sums.of(&stages, "stuck");
    let unresolved = sums.of(&stages, "unresolved");
    // What others of its key keep waiting until its caller's deadline is what the rules demand.
    let waited = sums.one("plain", "kept_waiting");
    let plain = sums.one("plain", "unresolved") - waited;
    let every = format!("{} unresolved with every axis drawn", count(unresolved));
    let value = format!("{undecided}; {plain} ({waited} kept waiting by others of their key; {every})");
    sums.judge(undecided + plain == 0.0, value)
}

fn lateness(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [flagged, unflagged] = ["flagged_late", "unflagged"].map(|name| sums.one("unbounded", name));
    let value = format!("{} flagged, {unflagged} not", count(flagged));
    sums.judge(unflagged == 0.0 && flagged > 0.0, value)
}

fn planted(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [bugs, found] = ["bugs", "found"].map(|name| sums.one("planted", name));
    sums.judge(found == bugs && bugs >= 40.0, format!("{found} of {bugs}"))
}

fn catalogue(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [items, fired] = ["items", "fired"].map(|name| sums.one("catalogue", name));
    sums.judge(fired == items && items > 0.0, format!("{fired} of {items}"))
}

fn scripts(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [scripts, violations] = ["scripts", "violations"].map(|name| sums.one("scripts", name));
    let value = format!("{} scripts, {} violations", count(scripts), count(violations));
    sums.judge(violations == 0.0 && scripts > 0.0, value)
}

fn crashes(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [images, flips] = ["crash_images", "flips"].map(|name| sums.one("images", name));
    let [killed, doubts] = ["killed", "in_doubt"].map(|name| sums.one("kills", name));
    let value = format!(
        "{} images, {} flipped bits; {} kills, {} orders in doubt behind them",
        count(images),
        count(flips),
        count(killed),
        count(doubts),
    );
    sums.judge(images >= 1e6 && killed >= 300.0, value)
}

fn states(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let states = sums.one("model", "states");
    sums.judge(states >= 250_000.0, format!("{} states", count(states)))
}

fn schedules(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let stages = ["limiter-threads", "order-threads", "login-threads"];
    let [schedules, models] = ["schedules", "models"].map(|name| sums.of(&stages, name));
    let value = format!("{} schedules of {models} models", count(schedules));
    sums.judge(schedules >= 100_000.0 && models >= 4.0, value)
}

fn corpora(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [targets, inputs] = ["targets", "inputs"].map(|name| sums.one("corpora", name));
    sums.judge(targets >= 7.0 && inputs > 0.0, format!("{targets} targets, {} inputs", count(inputs)))
}

fn mutants(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [mutants, caught] = ["mutants", "caught"].map(|name| sums.one("mutants", name));
    sums.judge(caught == mutants && mutants > 0.0, format!("{caught} of {mutants}"))
}

fn limits(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [sends, refused, overfull] =
        ["promised_sends", "promised_429", "overfull"].map(|name| sums.one("limits", name));
    let value = format!("{refused} 429s, {overfull} windows in {} sends", count(sends));
    sums.judge(refused + overfull == 0.0 && sends >= 1e7, value)
}

fn secrets(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [sinks, leaks] = ["sinks", "leaks"].map(|name| sums.one("secrets", name));
    sums.judge(sinks >= 12.0 && leaks == 0.0, format!("{sinks} sinks, {leaks} leaks"))
}

fn wire(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [calm, stormy] = ["calm", "stormy"].map(|name| sums.one("wire", name));
    sums.judge((1.0..=1.05).contains(&calm), format!("{calm:.3}; {stormy:.2}"))
}

fn soak(figures: &Figures) -> Judgement {
    let mut sums = Sums::new(figures);
    let [seconds, calls, slope] = ["seconds", "calls", "kib_a_minute"].map(|name| sums.one("soak", name));
    let value = format!("{seconds} s, {} calls: {slope:+} KiB a minute", count(calls));
    sums.judge(seconds >= 50.0, value)
}
