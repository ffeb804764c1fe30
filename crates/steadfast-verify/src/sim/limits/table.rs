//! The figures as tables for people.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use steadfast_sandbox::enforce::Kind;
use steadfast_spec::Zone;

use super::{
    campaign::{Campaign, Outcome},
    contender::{Contender, Profile},
    load::{Load, Memory, Settle, Storm},
    matrix::{DISCIPLINES, GATEWAYS, OURS, ZONES},
    row::Row,
    tally::Tally,
    words::{grouped, limits, named, per_thousand, seconds, short},
};
use crate::sim::network::{Network, S};

/// Writes the results of a campaign: what was refused, how much of the quota was used, and how long requests waited.
///
/// # Errors
///
/// The error of `out`.
pub(super) fn write(campaign: &Campaign, outcome: &Outcome, mut out: impl Write) -> io::Result<()> {
    for zone in ZONES {
        refusals(outcome, zone, &mut out)?;
    }
    shares(outcome, &mut out)?;
    hard_times(outcome, &mut out)?;
    cancels(outcome, &mut out)?;
    verdict(campaign, outcome, &mut out)
}

fn refusals(outcome: &Outcome, zone: Zone, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "429s in 1,000 sends · {zone}: {} · all networks · * none is promised", limits(zone))?;
    let heads = GATEWAYS.iter().fold(String::new(), |heads, kind| format!("{heads}{:>9}", short(*kind)));
    writeln!(out, "{:26}{heads}{:>12}", "", "sends")?;
    for contender in Contender::ALL {
        let mut line = format!("{:26}", named(contender));
        let mut sends = 0;
        for gateway in GATEWAYS {
            let cell = plain(outcome, zone, contender, gateway);
            let promised = contender.keeps(zone, gateway);
            let shown = per_thousand(&cell);
            let mark = if promised { "*" } else { " " };
            let _ = write!(line, "{:>9}", format!("{shown}{mark}"));
            sends += cell.sends;
        }
        writeln!(out, "{line}{:>12}", grouped(sends))?;
    }
    writeln!(out)
}

/// Returns the sum of saturated, bursty and idle loads over every network.
pub(super) fn plain(outcome: &Outcome, zone: Zone, contender: Contender, gateway: Kind) -> Tally {
    outcome.sum(|row| {
        (row.zone, row.contender, row.gateway) == (zone, contender, gateway)
            && Load::PLAIN.contains(&row.load)
    })
}

fn shares(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:26}{:>35}{:>35}   30 orders at once",
        "% of the quota, saturated", "place_order (gateway: log)", "general (gateway: log)"
    )?;
    let heads =
        Network::ALL.iter().fold(String::new(), |heads, line| format!("{heads}{:>7}", short_line(*line)));
    writeln!(out, "{:26}{heads}{heads}   {:>8} {:>8}", "", "10th", "last")?;
    for contender in Contender::ALL {
        let mut line = format!("{:26}", named(contender));
        for zone in ZONES {
            for network in Network::ALL {
                let cell = outcome.sum(|row| {
                    (row.zone, row.contender, row.network) == (zone, contender, network)
                        && (row.gateway, row.load) == (Kind::SlidingLog, Load::Saturated)
                });
                let shown =
                    if cell.sessions == 0 { "-".to_owned() } else { format!("{:.2}", 100.0 * cell.used()) };
                let _ = write!(line, "{shown:>7}");
            }
        }
        let burst = outcome.sum(|row| (row.contender, row.load) == (contender, Load::Thirty));
        writeln!(out, "{line}   {:>8} {:>8}", seconds(burst.tenth_left), seconds(burst.last_ended))?;
    }
    writeln!(out)
}

const fn short_line(network: Network) -> &'static str {
    match network {
        Network::Internet => "inet",
        other => other.name(),
    }
}

/// Writes the rows with restarts, late counting, and the cost of learning.
fn hard_times(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let loads = [
        Load::Restart(Memory::Kept),
        Load::Restart(Memory::Lost),
        Load::Late(Settle::Set),
        Load::Late(Settle::Unset),
    ];
    let heads = loads.iter().fold(String::new(), |heads, load| format!("{heads}{:>27}", load.to_string()));
    writeln!(out, "{:26}{heads}", "429s in 1,000 sends")?;
    for contender in OURS {
        let mut line = format!("{:26}", named(contender));
        for load in loads {
            let is_kept = |row: &Row| row.contender.keeps(row.zone, row.gateway);
            let cell = outcome.sum(|row| (row.contender, row.load) == (contender, load) && is_kept(row));
            let promised = load.can_be_kept(Network::Const);
            let _ = write!(
                line,
                "{:>27}",
                format!("{}{}", per_thousand(&cell), if promised { "*" } else { " " })
            );
        }
        writeln!(out, "{line}")?;
    }
    for contender in OURS {
        let is_spread = |row: &Row| matches!(row.load, Load::Spread(_)) && row.promises_zero();
        let spread = outcome.sum(|row| row.contender == contender && is_spread(row));
        writeln!(
            out,
            "{}, spread after a 429, with lost answers: {:.0} % of the quota used, {} more 429s in {} sends",
            named(contender),
            100.0 * spread.used(),
            grouped(spread.avoidable_429()),
            grouped(spread.sends),
        )?;
    }
    let counters = |row: &Row| {
        matches!(row.gateway, Kind::SlidingCounter { .. } | Kind::CountingRejects { .. })
            && row.contender == Contender::Steadfast(Profile::Adaptive)
            && Load::PLAIN.contains(&row.load)
    };
    let learning = outcome.sum(counters);
    writeln!(
        out,
        "steadfast adaptive at counters: {:.1} 429s a session on average, {} at most; {:.1} after its first minute\n",
        learning.http_429 as f64 / learning.sessions.max(1) as f64,
        learning.worst_429,
        learning.late_429 as f64 / learning.sessions.max(1) as f64,
    )
}

fn cancels(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "Wait of a cancel, in seconds · 12 a minute beside polls without end · const, lan, cloud and internet"
    )?;
    writeln!(
        out,
        "{:26}{:>22}{:>24}{:>10}{:>10}{:>10}{:>10}   bursts of k ≤ 20",
        "", "polls", "and verifications", "and 429s", "of 60 s", "or resets", "bad line"
    )?;
    writeln!(
        out,
        "{:26}{:>22}{:>24}{:>10}{:>10}{:>10}{:>10}   beyond their bound",
        "", "p50 / p99 / max", "p50 / p99 / max", "p99", "p99", "p99", "p99"
    )?;
    for contender in DISCIPLINES {
        let on = |load: Load, bad: bool| {
            outcome.sum(|row| {
                (row.contender, row.load) == (contender, load) && (row.network == Network::Bad) == bad
            })
        };
        let (calm, storm) =
            (on(Load::Cancels(Storm::None), false), on(Load::Cancels(Storm::Verification), false));
        let p99 = |tally: &Tally| tally.cancel_wait(990).map_or_else(|| "-".to_owned(), seconds);
        let bursts = on(Load::CancelBursts, false);
        writeln!(
            out,
            "{:26}{:>22}{:>24}{:>10}{:>10}{:>10}{:>10}   {} of {}",
            named(contender),
            three(&calm),
            three(&storm),
            p99(&on(Load::Cancels(Storm::Freeze), false)),
            p99(&on(Load::Cancels(Storm::Told), false)),
            p99(&on(Load::Cancels(Storm::Resets), false)),
            p99(&on(Load::Cancels(Storm::Verification), true)),
            bursts.slow_bursts,
            bursts.bursts.len(),
        )?;
    }
    let lenient = outcome.sum(|row| {
        let lossy = row.network == Network::Bad || row.load == Load::Cancels(Storm::Resets);
        row.contender == Contender::Preset
            && matches!(row.load, Load::Cancels(_))
            && lossy
            && !matches!(row.load, Load::Cancels(Storm::Freeze | Storm::Told))
    });
    writeln!(
        out,
        "steadfast lets cancels go after lost answers (resets, bad line): {} 429s in {} sends\n",
        grouped(lenient.http_429),
        grouped(lenient.sends)
    )
}

fn three(tally: &Tally) -> String {
    let at = |share| tally.cancel_wait(share).map_or_else(|| "-".to_owned(), seconds);
    format!("{} / {} / {}", at(500), at(990), at(1_000))
}

fn verdict(campaign: &Campaign, outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let sends = outcome.promised_sends();
    let all = outcome.sum(|_| true);
    let promised = outcome.sum(Row::promises_zero);
    writeln!(
        out,
        "{} sends in {} hours of virtual time; {} of them in the {} rows that promise no 429 (*): {} 429s",
        grouped(all.sends),
        grouped(all.ran / (3_600 * S)),
        grouped(sends),
        grouped(outcome.rows.iter().filter(|(row, _)| row.promises_zero()).count() as u64),
        grouped(promised.avoidable_429()),
    )?;
    if promised.avoidable_429() == 0 && sends >= 3 {
        writeln!(out, "so fewer than one in {} under this model, at 95 %", grouped(sends / 3))?;
    }
    writeln!(
        out,
        "{} sessions of these rows recounted, every stretch of a window's length by hand: {} too full",
        grouped(promised.recounted),
        grouped(promised.overfull),
    )?;
    for (row, tally) in outcome.broken().take(8) {
        writeln!(out, "broken: {row}: {} 429s in {} sends", tally.avoidable_429(), tally.sends)?;
    }
    writeln!(
        out,
        "the same again: cargo xtask sim limits --seed {} --rounds {}{} (took {:.0} s)",
        campaign.seed,
        outcome.rounds,
        if campaign.session < 600 * S { " --quick" } else { "" },
        outcome.took.as_secs_f64(),
    )
}
