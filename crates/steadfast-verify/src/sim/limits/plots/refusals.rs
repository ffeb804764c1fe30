use steadfast_spec::Zone;
use steadfast_svg::{Anchor, Svg};

use super::{
    super::{
        campaign::Outcome,
        contender::Contender,
        matrix::{GATEWAYS, ZONES},
        table::plain,
        tally::Tally,
        words::{limits, named, per_thousand, short},
    },
    sheet::begun,
};

const LEFT: f64 = 190.0;
const TOP: f64 = 108.0;
const CELL: (f64, f64) = (78.0, 27.0);
/// The height of one zone's panel, with its headings.
const PANEL: f64 = 12.0 * CELL.1 + 84.0;

/// The classes of cells, darker where more is refused.
const STEPS: [(f64, &str); 6] =
    [(0.0, "none"), (0.1, "tenth"), (1.0, "one"), (10.0, "ten"), (100.0, "hundred"), (f64::INFINITY, "more")];

/// Draws 429s by limiter and way of counting, with a panel for each zone.
pub(super) fn draw(outcome: &Outcome) -> Svg {
    let width = LEFT + CELL.0 * GATEWAYS.len() as f64 + 30.0;
    let height = TOP + PANEL * ZONES.len() as f64 + 44.0;
    let mut svg =
        begun((width, height), "429s in 1,000 sends, by limiter and by the gateway's way of counting");
    let note =
        "Saturated, bursty and idle-then-burst demand over five networks, clocks ±500 ppm, random phases.";
    svg.text("faint", (24.0, 56.0), Anchor::Start, note);
    legend(&mut svg, 82.0);
    for (index, zone) in ZONES.into_iter().enumerate() {
        panel(&mut svg, outcome, zone, TOP + PANEL * index as f64);
    }
    let notes = [
        "+rejects: a sliding counter that counts the requests it refuses. leaky b: nginx's limit_req with burst b.",
        "Only steadfast reacts to a 429; the peers only limit, and their users add a retry.",
    ];
    for (line, note) in notes.into_iter().enumerate() {
        svg.text("small faint", (24.0, height - 28.0 + 17.0 * line as f64), Anchor::Start, note);
    }
    svg
}

fn legend(svg: &mut Svg, y: f64) {
    let texts = ["none", "≤ 0.1", "≤ 1", "≤ 10", "≤ 100", "more"];
    let mut x = LEFT;
    for ((_, class), text) in STEPS.into_iter().zip(texts) {
        svg.rect(class, (x, y - 12.0), (18.0, 16.0));
        svg.text("small", (x + 24.0, y + 1.0), Anchor::Start, text);
        x += 82.0;
    }
    svg.rect("promised", (x + 3.0, y - 11.0), (16.0, 14.0));
    svg.text("small", (x + 26.0, y + 1.0), Anchor::Start, "none is promised");
}

fn panel(svg: &mut Svg, outcome: &Outcome, zone: Zone, top: f64) {
    svg.text("head", (24.0, top + 22.0), Anchor::Start, &format!("{zone}: {}", limits(zone)));
    let right = LEFT + CELL.0 * GATEWAYS.len() as f64;
    svg.text("small faint", (right, top + 22.0), Anchor::End, "how the gateway counts →");
    svg.text("small faint", (24.0, top + 48.0), Anchor::Start, "limiter ↓");
    for (column, gateway) in GATEWAYS.into_iter().enumerate() {
        let x = LEFT + CELL.0 * (column as f64 + 0.5);
        svg.text("small", (x, top + 48.0), Anchor::Middle, short(gateway));
    }
    for (row, contender) in Contender::ALL.into_iter().enumerate() {
        let y = top + 56.0 + CELL.1 * row as f64;
        svg.text("", (LEFT - 10.0, y + 18.0), Anchor::End, &named(contender));
        for (column, gateway) in GATEWAYS.into_iter().enumerate() {
            let at = (LEFT + CELL.0 * column as f64, y);
            cell(svg, at, &plain(outcome, zone, contender, gateway), contender.keeps(zone, gateway));
        }
    }
}

fn cell(svg: &mut Svg, (x, y): (f64, f64), tally: &Tally, promised: bool) {
    let rate = 1_000.0 * tally.http_429 as f64 / tally.sends.max(1) as f64;
    let step = STEPS.iter().position(|(most, _)| rate <= *most).unwrap_or(STEPS.len() - 1);
    svg.rect(STEPS[step].1, (x + 1.0, y + 1.0), (CELL.0 - 2.0, CELL.1 - 2.0));
    if promised {
        svg.rect("promised", (x + 2.5, y + 2.5), (CELL.0 - 5.0, CELL.1 - 5.0));
    }
    let class = if step >= 4 { "small light" } else { "small" };
    svg.text(class, (x + CELL.0 / 2.0, y + 18.0), Anchor::Middle, &per_thousand(tally));
}
