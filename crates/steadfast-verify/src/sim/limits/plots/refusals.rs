use steadfast_spec::Zone;

use super::{
    super::{
        campaign::Outcome,
        contender::Contender,
        matrix::{GATEWAYS, ZONES},
        table::plain,
        tally::Tally,
        words::{limits, named, per_thousand, short},
    },
    svg::{Anchor, BLUE, FAINT, INK, PAPER, Svg},
};

const LEFT: f64 = 190.0;
const TOP: f64 = 108.0;
const CELL: (f64, f64) = (78.0, 27.0);
/// The height of one zone's panel, with its headings.
const PANEL: f64 = 12.0 * CELL.1 + 84.0;

/// Darker where more is refused; one hue, so that only lightness matters.
const STEPS: [(f64, &str); 6] = [
    (0.0, "#f3f6f9"),
    (0.1, "#d6e4f0"),
    (1.0, "#a9c9e2"),
    (10.0, "#6fa8d0"),
    (100.0, "#2f7fb5"),
    (f64::INFINITY, "#0b4f80"),
];

/// Draws 429s by limiter and way of counting, with a panel for each zone.
pub(super) fn draw(outcome: &Outcome) -> Svg {
    let width = LEFT + CELL.0 * GATEWAYS.len() as f64 + 30.0;
    let height = TOP + PANEL * ZONES.len() as f64 + 44.0;
    let mut svg = Svg::new(width as u32, height as u32);
    svg.bold((24.0, 34.0), 19, "429s in 1,000 sends, by limiter and by the gateway's way of counting");
    let note =
        "Saturated, bursty and idle-then-burst demand over five networks, clocks ±500 ppm, random phases.";
    svg.text((24.0, 56.0), 13, Anchor::Start, FAINT, note);
    legend(&mut svg, 82.0);
    for (index, zone) in ZONES.into_iter().enumerate() {
        panel(&mut svg, outcome, zone, TOP + PANEL * index as f64);
    }
    let notes = [
        "+rejects: a sliding counter that counts the requests it refuses. leaky b: nginx's limit_req with burst b.",
        "Only steadfast reacts to a 429; the peers only limit, and their users add a retry.",
    ];
    for (line, note) in notes.into_iter().enumerate() {
        svg.text((24.0, height - 28.0 + 17.0 * line as f64), 12, Anchor::Start, FAINT, note);
    }
    svg
}

fn legend(svg: &mut Svg, y: f64) {
    let texts = ["none", "≤ 0.1", "≤ 1", "≤ 10", "≤ 100", "more"];
    let mut x = LEFT;
    for ((_, fill), text) in STEPS.into_iter().zip(texts) {
        svg.rect((x, y - 12.0), (18.0, 16.0), fill);
        svg.text((x + 24.0, y + 1.0), 12, Anchor::Start, INK, text);
        x += 82.0;
    }
    svg.frame((x + 3.0, y - 11.0), (16.0, 14.0), BLUE);
    svg.text((x + 26.0, y + 1.0), 12, Anchor::Start, INK, "none is promised");
}

fn panel(svg: &mut Svg, outcome: &Outcome, zone: Zone, top: f64) {
    svg.bold((24.0, top + 22.0), 15, &format!("{zone}: {}", limits(zone)));
    let right = LEFT + CELL.0 * GATEWAYS.len() as f64;
    svg.text((right, top + 22.0), 12, Anchor::End, FAINT, "how the gateway counts →");
    svg.text((24.0, top + 48.0), 12, Anchor::Start, FAINT, "limiter ↓");
    for (column, gateway) in GATEWAYS.into_iter().enumerate() {
        let x = LEFT + CELL.0 * (column as f64 + 0.5);
        svg.text((x, top + 48.0), 12, Anchor::Middle, INK, short(gateway));
    }
    for (row, contender) in Contender::ALL.into_iter().enumerate() {
        let y = top + 56.0 + CELL.1 * row as f64;
        svg.text((LEFT - 10.0, y + 18.0), 13, Anchor::End, INK, &named(contender));
        for (column, gateway) in GATEWAYS.into_iter().enumerate() {
            let at = (LEFT + CELL.0 * column as f64, y);
            cell(svg, at, &plain(outcome, zone, contender, gateway), contender.keeps(zone, gateway));
        }
    }
}

fn cell(svg: &mut Svg, (x, y): (f64, f64), tally: &Tally, promised: bool) {
    let rate = 1_000.0 * tally.http_429 as f64 / tally.sends.max(1) as f64;
    let step = STEPS.iter().position(|(most, _)| rate <= *most).unwrap_or(STEPS.len() - 1);
    svg.rect((x + 1.0, y + 1.0), (CELL.0 - 2.0, CELL.1 - 2.0), STEPS[step].1);
    if promised {
        svg.frame((x + 2.5, y + 2.5), (CELL.0 - 5.0, CELL.1 - 5.0), BLUE);
    }
    let ink = if step >= 4 { PAPER } else { INK };
    svg.text((x + CELL.0 / 2.0, y + 18.0), 12, Anchor::Middle, ink, &per_thousand(tally));
}
