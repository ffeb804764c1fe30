use steadfast_call::Lane;
use steadfast_svg::{Anchor, Svg};

use crate::demo::{table::milliseconds, tally::quantile, wait::Waits};

/// One client's waits from the call to the wire, lane by lane, on a logarithmic axis.
pub(crate) struct WaitPlot<'a> {
    pub(crate) client: &'a str,
    pub(crate) waits: &'a Waits,
}

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = WIDTH - 8.0;
const LANE: f64 = 54.0;
/// The axis, in decades of milliseconds.
const DECADES: (i32, i32) = (-1, 5);

/// The lanes of the scenario, and the requests in them.
const LANES: [(Lane, &str); 3] =
    [(Lane::Critical, "cancels"), (Lane::Trading, "orders"), (Lane::Normal, "order lists")];

impl WaitPlot<'_> {
    pub(crate) fn draw(&self) -> Svg {
        let label = format!("{}: waits from call to wire by lane", self.client);
        let mut svg = Svg::new(WIDTH, HEIGHT, &label);
        let bottom = LANE * LANES.len() as f64 + 6.0;
        for decade in DECADES.0..=DECADES.1 {
            let wait = 10_f64.powi(decade);
            svg.line("grid", (x(wait), 14.0), (x(wait), bottom));
            let anchor = if decade == DECADES.0 {
                Anchor::Start
            } else if decade == DECADES.1 {
                Anchor::End
            } else {
                Anchor::Middle
            };
            let tick = match decade {
                ..=2 => format!("{wait} ms"),
                _ => format!("{} s", wait / 1_000.0),
            };
            svg.text("tick", (x(wait), bottom + 14.0), anchor, &tick);
        }
        for (place, (lane, what)) in LANES.into_iter().enumerate() {
            self.lane(&mut svg, lane, what, LANE * place as f64);
        }
        svg
    }

    fn lane(&self, svg: &mut Svg, lane: Lane, what: &str, top: f64) {
        let waits = self.waits.of_lane(lane);
        let (middle, base) = (top + 34.0, top + 50.0);
        svg.text("lane", (LEFT, top + 12.0), Anchor::Start, what);
        let (p50, p99) = (quantile(&waits, 0.5), quantile(&waits, 0.99));
        let figures = format!("median {}  p99 {}", milliseconds(p50), milliseconds(p99));
        svg.text("figures", (RIGHT, top + 12.0), Anchor::End, &figures);
        for (number, wait) in waits.iter().enumerate() {
            // Spread over the lane's height, so that equal waits do not overlap.
            let off = ((number * 7) % 13) as f64 - 6.0;
            svg.dot("wait", (x(*wait), middle + off * 1.5), 2.2).hint(&milliseconds(*wait));
        }
        for quantile in [p50, p99] {
            svg.line("quantile", (x(quantile), top + 20.0), (x(quantile), base));
        }
    }
}

fn x(wait: f64) -> f64 {
    let (from, to) = (f64::from(DECADES.0), f64::from(DECADES.1));
    let decade = wait.max(1e-9).log10().clamp(from, to);
    LEFT + (RIGHT - LEFT) * (decade - from) / (to - from)
}
