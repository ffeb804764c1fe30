use steadfast_svg::{Anchor, Svg};

use super::{
    super::{
        campaign::Outcome,
        contender::Contender,
        load::{Load, Storm},
        matrix::DISCIPLINES,
        tally::Tally,
    },
    sheet::begun,
};
use crate::sim::network::{MS, Nanos, Network, S};

const WIDTH: f64 = 920.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = WIDTH - 50.0;
const TOP: f64 = 106.0;
const ROW: f64 = 46.0;

/// Shorter waits are drawn as this one; the difference is not noticeable.
const SHORTEST: Nanos = MS;
const LONGEST: Nanos = 100 * S;

/// The wait that 99 of 100 cancels should stay below.
const TARGET: Nanos = 50 * MS;

/// Draws the wait of a cancel, by discipline: the median, the 99th percentile, the longest.
pub(super) fn draw(outcome: &Outcome) -> Svg {
    let bottom = TOP + ROW * DISCIPLINES.len() as f64;
    let mut svg =
        begun((WIDTH, bottom + 66.0), "How long a cancel waits behind polls and a storm of verifications");
    let note = "12 cancels a minute on average, general zone: 10 in 1 s and 400 in 1 min; const, lan, cloud and internet.";
    svg.text("faint", (24.0, 56.0), Anchor::Start, note);
    legend(&mut svg, 84.0);
    axis(&mut svg, bottom);
    for (index, contender) in DISCIPLINES.into_iter().enumerate() {
        let waits = outcome.sum(|row| {
            (row.contender, row.load) == (contender, Load::Cancels(Storm::Verification))
                && row.network != Network::Bad
        });
        range(&mut svg, TOP + ROW * (index as f64 + 0.5), discipline(contender), &waits);
    }
    svg
}

fn discipline(contender: Contender) -> (&'static str, &'static str) {
    match contender {
        Contender::Preset => ("priority with a reserve", "steadfast, preset"),
        Contender::PriorityOnly => ("priority, no reserve", "steadfast without ceilings"),
        Contender::OneQueue => ("one queue", "steadfast, one lane"),
        Contender::Governor => ("one queue", "governor, burst N"),
        Contender::GovernorPaced => ("one queue", "governor, paced"),
        _ => ("one queue", "tower"),
    }
}

fn legend(svg: &mut Svg, y: f64) {
    svg.dot("half", (LEFT + 8.0, y - 4.0), 5.0);
    svg.text("small", (LEFT + 20.0, y), Anchor::Start, "half of them (p50)");
    svg.diamond("most", (LEFT + 168.0, y - 4.0), 6.5);
    svg.text("small", (LEFT + 180.0, y), Anchor::Start, "99 of 100 (p99)");
    svg.line("longest", (LEFT + 312.0, y - 11.0), (LEFT + 312.0, y + 3.0));
    svg.text("small", (LEFT + 320.0, y), Anchor::Start, "longest");
    svg.line("target", (LEFT + 400.0, y - 4.0), (LEFT + 430.0, y - 4.0));
    svg.text("small", (LEFT + 438.0, y), Anchor::Start, "target for p99: 50 ms");
}

fn axis(svg: &mut Svg, bottom: f64) {
    let marks = [
        (MS, "≤ 1 ms"),
        (10 * MS, "10 ms"),
        (100 * MS, "100 ms"),
        (S, "1 s"),
        (10 * S, "10 s"),
        (100 * S, "100 s"),
    ];
    for (time, text) in marks {
        svg.line("grid", (x(time), TOP), (x(time), bottom));
        svg.text("small", (x(time), bottom + 18.0), Anchor::Middle, text);
    }
    svg.line("target", (x(TARGET), TOP), (x(TARGET), bottom));
    let caption = "wait from the call until the request leaves (logarithmic)";
    svg.text("faint", ((LEFT + RIGHT) / 2.0, bottom + 44.0), Anchor::Middle, caption);
}

fn range(svg: &mut Svg, y: f64, (name, who): (&str, &str), waits: &Tally) {
    svg.text("", (LEFT - 16.0, y - 2.0), Anchor::End, name);
    svg.text("small faint", (LEFT - 16.0, y + 14.0), Anchor::End, who);
    let (Some(half), Some(most), Some(longest)) =
        (waits.cancel_wait(500), waits.cancel_wait(990), waits.cancel_wait(1_000))
    else {
        svg.text("small faint", (LEFT + 8.0, y + 4.0), Anchor::Start, "not played");
        return;
    };
    svg.line("range", (x(half), y), (x(longest), y));
    svg.line("longest", (x(longest), y - 8.0), (x(longest), y + 8.0));
    svg.dot("half", (x(half), y), 5.0);
    svg.diamond("most", (x(most), y), 6.5);
    let shown = format!("p99 {}", in_words(most));
    svg.text("small haloed", (x(longest) + 12.0, y + 4.0), Anchor::Start, &shown);
}

fn in_words(wait: Nanos) -> String {
    if wait < MS {
        "below 1 ms".to_owned()
    } else if wait < S {
        format!("{} ms", wait / MS)
    } else {
        format!("{:.1} s", wait as f64 / S as f64)
    }
}

/// Returns the position of a wait on the axis.
fn x(wait: Nanos) -> f64 {
    let decades = |time: Nanos| (time.clamp(SHORTEST, LONGEST) as f64 / SHORTEST as f64).log10();
    LEFT + 10.0 + decades(wait) / decades(LONGEST) * (RIGHT - LEFT - 20.0)
}
