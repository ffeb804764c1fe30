use std::time::Duration;

use steadfast_svg::{Anchor, Svg};

use crate::demo::trail::{Ending, Trail};

/// Each order in doubt, one a row, with its fate at each client.
pub(crate) struct DoubtPlot<'a> {
    pub(crate) clients: &'a [&'a str],
    pub(crate) rows: Vec<DoubtRow>,
}

/// One order, the fault that struck it, and its trail at each client.
pub(crate) struct DoubtRow {
    pub(crate) name: String,
    pub(crate) fault: String,
    pub(crate) trails: Vec<Trail>,
}

const WIDTH: f64 = 1_212.0;
const NAME: f64 = 84.0;
const LABELS: f64 = 246.0;
/// The width from a panel's verdict to the next panel.
const VERDICT: f64 = 112.0;
const ROW: f64 = 19.0;
const TOP: f64 = 46.0;
const TICKS: [f64; 6] = [0.0, 1.0, 3.0, 8.0, 15.0, 25.0];
/// The end of the axis, in seconds. Later events are drawn at its end.
const LONGEST: f64 = 30.0;

impl DoubtPlot<'_> {
    pub(crate) fn draw(&self) -> Svg {
        let height = TOP + ROW * self.rows.len() as f64 + 8.0;
        let mut svg =
            Svg::new(WIDTH, height, "each order in doubt: its sends, when it was placed, and how it ended");
        let panel = (WIDTH - LABELS) / self.clients.len().max(1) as f64;
        for (column, client) in self.clients.iter().enumerate() {
            let left = LABELS + panel * column as f64;
            svg.text("panel", (left, 14.0), Anchor::Start, client);
            for tick in TICKS {
                let at = left + x(tick, panel);
                svg.line("grid", (at, TOP - 10.0), (at, height - 8.0));
                svg.text("tick", (at, TOP - 16.0), Anchor::Middle, &format!("{tick} s"));
            }
        }
        for (place, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * (place as f64 + 0.5);
            svg.text("order", (0.0, y + 4.0), Anchor::Start, &row.name);
            svg.text("fault", (NAME, y + 4.0), Anchor::Start, &row.fault);
            for (column, trail) in row.trails.iter().enumerate() {
                draw_trail(&mut svg, trail, LABELS + panel * column as f64, panel, y);
            }
        }
        svg
    }
}

fn draw_trail(svg: &mut Svg, trail: &Trail, left: f64, panel: f64, y: f64) {
    let at = |time: Duration| left + x(time.as_secs_f64(), panel);
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    if let Some((ended, _)) = &trail.ended {
        svg.line("doubt", (at(Duration::ZERO), y), (at(*ended), y));
    }
    for (number, applied) in trail.applied.iter().enumerate() {
        let class = if number == 0 { "placed" } else { "twice" };
        svg.diamond(class, (at(*applied), y), 6.0).hint(&format!(
            "order {} exists after {}",
            number + 1,
            seconds(*applied)
        ));
    }
    for (number, send) in trail.sends.iter().enumerate() {
        svg.dot("send", (at(*send), y), 2.0).hint(&format!(
            "request {} after {}",
            number + 1,
            seconds(*send)
        ));
    }
    let ended = trail.ended.as_ref().map(|(ended, _)| *ended);
    let after = ended.map(|ended| format!(" {:.1} s", ended.as_secs_f64())).unwrap_or_default();
    let (class, verdict) = match trail.ending() {
        Ending::Resolved(how) => ("good", format!("{}{after}", how.as_str())),
        Ending::Duplicated(orders) => ("bad", format!("{orders} orders")),
        Ending::Lost => ("bad", "lost".to_owned()),
        Ending::Open => ("open", "left in doubt".to_owned()),
        Ending::Unsent => ("open", "not sent".to_owned()),
    };
    svg.text(class, (left + panel - VERDICT, y + 4.0), Anchor::Start, &verdict);
}

/// A square root scale, because most is decided in the first seconds.
fn x(seconds: f64, panel: f64) -> f64 {
    let share = (seconds.clamp(0.0, LONGEST) / LONGEST).sqrt();
    8.0 + (panel - VERDICT - 20.0) * share
}
