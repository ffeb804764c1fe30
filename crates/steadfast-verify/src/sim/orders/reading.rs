use std::time::Duration;

use steadfast_sandbox::SpecReading;

use crate::sim::chooser::{Chooser, Site};

/// How a seed's gateway interprets what the specification leaves open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) axes: SpecReading,
    /// How much later than it exists an order is listed at most.
    pub(crate) visible_after: Duration,
}

/// Axes that are chosen elsewhere, and two that are not drawn. A list without orders that are no longer open breaks the
/// assumption of every proof (A3 of `docs/guarantees.md`), so it is injected as a fault where the client can notice it.
const ELSEWHERE: [&str; 7] = [
    "axis.list-scope",
    "axis.list-order",
    "axis.retry-after",
    "axis.visibility-lag",
    "axis.list-shows",
    "axis.rejected",
    "axis.remarks",
];

impl Reading {
    /// Returns the default in half of the seeds, and random axes in the others. `most` is the largest age of a list.
    pub(crate) fn of(chooser: &Chooser, most: Duration) -> Self {
        if chooser.weigh(Site::new("axes"), &[50, 50]) == 0 {
            return Self::default();
        }
        let mut axes = SpecReading::drawn(|site, n| {
            if ELSEWHERE.contains(&site) { 0 } else { chooser.choose(Site::new(site), n) }
        });
        let lags = [("none", 0), ("200ms", 200), ("1s", 1_000)];
        let (lag, millis) = lags[chooser.choose(Site::new("axis.visibility-lag"), 3) as usize];
        let visible_after = Duration::from_millis(millis);
        if visible_after > most || axes.set("visibility-lag", lag).is_err() {
            return Self { axes, ..Self::default() };
        }
        Self { axes, visible_after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_drawn_that_break_no_assumption() {
        let drawn: Vec<Reading> =
            (0..2_000).map(|seed| Reading::of(&Chooser::rng(seed), Duration::from_secs(1))).collect();
        for (index, axis) in SpecReading::AXES.iter().enumerate() {
            let name = format!("axis.{}", axis.name);
            for value in axis.values {
                let meets = drawn.iter().any(|reading| reading.axes.values()[index].1 == *value);
                let lag = name == "axis.visibility-lag" && ["200ms", "1s"].contains(value);
                let free = !ELSEWHERE.contains(&name.as_str()) || *value == axis.values[0] || lag;
                assert_eq!(meets, free, "{name} {value}");
            }
        }
    }

    #[test]
    fn no_order_is_listed_later_than_a_list_may_be_old() {
        for seed in 0..200 {
            let reading = Reading::of(&Chooser::rng(seed), Duration::from_millis(300));
            assert!(reading.visible_after <= Duration::from_millis(300));
        }
    }
}
