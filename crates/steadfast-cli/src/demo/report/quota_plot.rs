use std::time::Duration;

use steadfast_svg::{Anchor, Svg};

use crate::demo::quota::ZoneUsage;

/// Requests in each second against one zone's quota, for one client.
pub(crate) struct QuotaPlot<'a> {
    pub(crate) client: &'a str,
    pub(crate) usage: &'a ZoneUsage,
    /// The length of the axis, the same for all clients.
    pub(crate) seconds: usize,
    /// The height of the axis in requests, the same for all clients.
    pub(crate) most: usize,
    pub(crate) night: Option<Duration>,
}

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 26.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = HEIGHT - 20.0;

/// Counts the requests in each second.
pub(crate) fn per_second(instants: &[Duration], seconds: usize) -> Vec<usize> {
    let mut counts = vec![0; seconds];
    for instant in instants {
        if let Some(count) = counts.get_mut(instant.as_secs() as usize) {
            *count += 1;
        }
    }
    counts
}

impl QuotaPlot<'_> {
    pub(crate) fn draw(&self) -> Svg {
        let zone = self.usage.zone;
        let label = format!("{}: requests of each second in zone {zone}", self.client);
        let mut svg = Svg::new(WIDTH, HEIGHT, &label);
        let x = |second: f64| LEFT + (WIDTH - LEFT - 6.0) * second / self.seconds.max(1) as f64;
        let up = |requests: usize| (BOTTOM - TOP) * requests as f64 / self.most.max(1) as f64;

        let step = if self.most > 40 {
            20
        } else if self.most > 20 {
            10
        } else {
            5
        };
        for requests in (0..=self.most).step_by(step) {
            let y = BOTTOM - up(requests);
            svg.line(if requests == 0 { "axis" } else { "grid" }, (LEFT, y), (WIDTH - 6.0, y));
            svg.text("tick", (LEFT - 5.0, y + 3.5), Anchor::End, &requests.to_string());
        }
        for second in (0..=self.seconds).step_by(10) {
            svg.text("tick", (x(second as f64), BOTTOM + 14.0), Anchor::Middle, &format!("{second} s"));
        }
        self.bars(&mut svg, x, up);
        let quota = BOTTOM - up(self.usage.limit_per_second as usize);
        svg.line("quota", (LEFT, quota), (WIDTH - 6.0, quota));
        if let Some(night) = self.night.map(|night| x(night.as_secs_f64())) {
            svg.line("night", (night, TOP - 8.0), (night, BOTTOM));
            svg.text("note", (night + 4.0, TOP - 2.0), Anchor::Start, "token dies");
        }
        svg
    }

    fn bars(&self, svg: &mut Svg, x: impl Fn(f64) -> f64, up: impl Fn(usize) -> f64) {
        let admitted = per_second(&self.usage.admitted, self.seconds);
        let refused = per_second(&self.usage.refused, self.seconds);
        let width = (x(1.0) - x(0.0) - 1.0).max(1.0);
        // Bars stand on `bottom`.
        let mut bar = |class: &str, left: f64, bottom: f64, height: f64, hint: &str| {
            svg.rect(class, (left, bottom - height), (width, height)).hint(hint);
        };
        for (second, (&admitted, &refused)) in admitted.iter().zip(&refused).enumerate() {
            let left = x(second as f64) + 0.5;
            if admitted > 0 {
                let hint = format!("second {second}: {admitted} admitted");
                bar("admitted", left, BOTTOM, up(admitted), &hint);
            }
            if refused > 0 {
                let hint = format!("second {second}: {refused} refused with 429");
                bar("refused", left, BOTTOM - up(admitted) - 1.0, (up(refused) - 1.0).max(1.0), &hint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_into_their_second_and_late_ones_off_the_axis() {
        let at = |ms: u64| Duration::from_millis(ms);
        assert_eq!(per_second(&[at(0), at(999), at(1_000), at(9_000)], 3), [2, 1, 0]);
    }
}
