use std::fmt;

use serde_json::{Value, json};

use super::figure::{Figure, OURS};

/// Our cost of something, beside a peer's for the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ratio {
    bench: String,
    case: String,
    unit: String,
    ours: f64,
    /// None offers the same in some rows.
    peer: Option<(String, f64)>,
}

/// Puts every figure of ours beside each of its peers'.
pub(super) fn of(bench: &str, figures: &[Figure]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for ours in figures.iter().filter(|figure| figure.who == OURS) {
        let ratio = |peer| Ratio {
            bench: bench.to_owned(),
            case: ours.case.clone(),
            unit: ours.unit.clone(),
            ours: ours.value,
            peer,
        };
        let same =
            |figure: &&Figure| figure.case == ours.case && figure.unit == ours.unit && figure.who != OURS;
        let before = ratios.len();
        let peers = figures.iter().filter(same).map(|peer| (peer.who.clone(), peer.value));
        ratios.extend(peers.map(|peer| ratio(Some(peer))));
        if ratios.len() == before {
            ratios.push(ratio(None));
        }
    }
    ratios
}

/// Returns all of them as one array; `theirs` is the divisor of `ratio`.
pub(super) fn json(ratios: &[Ratio]) -> Value {
    ratios
        .iter()
        .map(|ratio| {
            json!({
                "bench": ratio.bench,
                "case": ratio.case,
                "peer": ratio.peer.as_ref().map(|(who, _)| who),
                "ours": rounded(ratio.ours),
                "theirs": ratio.peer.as_ref().map(|(_, value)| rounded(*value)),
                "ratio": ratio.ratio().map(rounded),
                "unit": ratio.unit,
            })
        })
        .collect()
}

impl Ratio {
    /// None without a peer, or if the peer takes nothing.
    fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().filter(|(_, theirs)| *theirs != 0.0).map(|(_, theirs)| self.ours / theirs)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:9} {:38} {:>12} {:22}", self.bench, self.case, amount(self.ours), self.unit)?;
        let Some((who, theirs)) = &self.peer else { return Ok(()) };
        write!(f, " {who:32} {:>12}", amount(*theirs))?;
        self.ratio().map_or(Ok(()), |ratio| write!(f, " {ratio:8.3} ×"))
    }
}

/// A number with no more digits than say something.
pub(super) fn amount(value: f64) -> String {
    match value.abs() {
        whole if whole.fract() == 0.0 => format!("{value:.0}"),
        small if small < 100.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// The same with six digits: no bench knows more.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(case: &str, who: &str, value: f64, unit: &str) -> Figure {
        Figure { case: case.into(), who: who.into(), value, unit: unit.into() }
    }

    #[test]
    fn every_peer_of_a_case_has_a_row_and_a_case_without_one_too() {
        let figures = [
            figure("acquire", OURS, 30.0, "ns"),
            figure("acquire", "one", 60.0, "ns"),
            figure("acquire", "two", 0.0, "ns"),
            figure("acquire", OURS, 0.0, "allocations"),
            figure("settle", OURS, 5.0, "ns"),
        ];
        let found = json(&of("limiter", &figures));
        let ratios: Vec<_> = (0..4).map(|row| (&found[row]["peer"], &found[row]["ratio"])).collect();
        let null = &Value::Null;
        assert_eq!(ratios, [(&json!("one"), &json!(0.5)), (&json!("two"), null), (null, null), (null, null)]);
        assert_eq!(found[0]["unit"], "ns");
        assert_eq!(found.as_array().map(Vec::len), Some(4));
    }
}
