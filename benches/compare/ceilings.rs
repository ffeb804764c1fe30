use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::Table;

use super::figure::{Figure, OURS};
use super::ratio::amount;

/// How many instructions more or less a compiler may make of the same source.
const TOLERANCE: f64 = 0.10;
/// An event that happens only now and then shows as a fraction, and not always as the same.
const NOW_AND_THEN: f64 = 0.5;
/// The units of figures that are gated, if they are counted at all.
const UNITS: &[&str] = &["instructions", "allocations", "bytes"];

/// Counts checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

/// How the file begins.
const HEAD: &str = "\
# The most that each of our cases may take, held by `cargo xtask bench --check`: instructions within a tenth, allocations
# and bytes as they are rounded. Written by `cargo xtask bench --set-ceilings`; one that goes up needs its reason in the
# commit.
";

/// The most that each of our cases may take: `[subject."case"]`, then `unit = ceiling`.
pub(super) struct Ceilings(Table);

impl Ceilings {
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("ceilings.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("{} is not readable", path.display()))?;
        Ok(Self(text.parse().with_context(|| format!("{} is not TOML", path.display()))?))
    }

    /// Writes what was found down as what may be taken from now on.
    pub(super) fn write(folder: &Path, found: &[(&str, Vec<Figure>)]) -> Result<()> {
        let mut ceilings: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, i64>>> = BTreeMap::new();
        for (subject, figures) in found {
            for Figure { case, unit, value, .. } in gated(figures) {
                let units = ceilings.entry(subject).or_default().entry(case).or_default();
                units.insert(unit, value.round() as i64);
            }
        }
        let text = format!("{HEAD}\n{}", toml::to_string(&ceilings)?);
        let path = folder.join("ceilings.toml");
        fs::write(&path, text).with_context(|| format!("{} is not writable", path.display()))
    }

    /// Holds our figures against the ceilings of a subject; each is one check. A figure without a ceiling fails, and
    /// so does a ceiling without a figure, unless nothing was counted in its unit.
    pub(super) fn check(&self, subject: &str, figures: &[Figure]) -> Tally {
        let ours: Vec<_> = gated(figures).collect();
        let mut tally = Tally::default();
        let mut note = |what: Result<(), String>| match what {
            Ok(()) => tally.passed += 1,
            Err(why) => {
                eprintln!("{subject}: {why}");
                tally.failed += 1;
            }
        };
        for figure in &ours {
            note(self.judge(subject, figure));
        }
        for (case, unit) in self.names(subject) {
            let counted = ours.iter().any(|figure| figure.unit == unit);
            if !ours.iter().any(|figure| figure.unit == unit && figure.case == case) && counted {
                note(Err(format!("{case} has a ceiling of {unit} but is not measured")));
            }
        }
        tally
    }

    fn judge(&self, subject: &str, figure: &Figure) -> Result<(), String> {
        let Figure { case, value, unit, .. } = figure;
        let found = amount(*value);
        let Some(ceiling) = self.of(subject, case, unit) else {
            return Err(format!("{case} takes {found} {unit}, and has no ceiling in benches/ceilings.toml"));
        };
        let most = if unit == "instructions" { ceiling * (1.0 + TOLERANCE) } else { ceiling + NOW_AND_THEN };
        if *value > most {
            return Err(format!("{case} takes {found} {unit}, more than {}", amount(ceiling)));
        }
        if *value < ceiling * (1.0 - TOLERANCE) {
            eprintln!(
                "{subject}: {case} takes only {found} {unit}: its ceiling of {} can come down",
                amount(ceiling)
            );
        }
        Ok(())
    }

    fn of(&self, subject: &str, case: &str, unit: &str) -> Option<f64> {
        let ceiling = self.0.get(subject)?.get(case)?.get(unit)?;
        ceiling.as_float().or_else(|| ceiling.as_integer().map(|whole| whole as f64))
    }

    /// Every case and unit that has a ceiling.
    fn names(&self, subject: &str) -> impl Iterator<Item = (&str, &str)> {
        let cases = self.0.get(subject).and_then(|cases| cases.as_table()).into_iter().flatten();
        cases.flat_map(|(case, units)| {
            let units = units.as_table().into_iter().flatten();
            units.map(|(unit, _)| (case.as_str(), unit.as_str()))
        })
    }
}

fn gated(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    figures.iter().filter(|figure| figure.who == OURS && UNITS.contains(&&*figure.unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CEILINGS: &str = "[limiter.acquire]\ninstructions = 100\nallocations = 0\n";

    fn ours(value: f64, unit: &str) -> Figure {
        Figure { case: "acquire".into(), who: OURS.into(), value, unit: unit.into() }
    }

    fn check(figures: &[Figure]) -> Tally {
        Ceilings(CEILINGS.parse().unwrap()).check("limiter", figures)
    }

    #[test]
    fn instructions_may_be_a_tenth_more_and_allocations_none() {
        let within = check(&[ours(110.0, "instructions"), ours(0.0, "allocations")]);
        assert_eq!(within, Tally { passed: 2, failed: 0 });
        let above = check(&[ours(111.0, "instructions"), ours(1.0, "allocations")]);
        assert_eq!(above, Tally { passed: 0, failed: 2 });
    }

    #[test]
    fn what_has_no_ceiling_fails_and_what_is_no_count_does_not_matter() {
        let bytes = check(&[ours(100.0, "instructions"), ours(0.0, "allocations"), ours(8.0, "bytes")]);
        assert_eq!(bytes, Tally { passed: 2, failed: 1 });
        let time = check(&[ours(100.0, "instructions"), ours(0.0, "allocations"), ours(8.0, "ns")]);
        assert_eq!(time, Tally { passed: 2, failed: 0 });
    }

    #[test]
    fn a_ceiling_whose_case_is_gone_fails_unless_nothing_is_counted_in_its_unit() {
        let mut other = ours(0.0, "allocations");
        other.case = "settle".to_owned();
        assert_eq!(check(&[other]).failed, 2, "settle has no ceiling, and acquire no figure");
        assert_eq!(check(&[ours(0.0, "allocations")]), Tally { passed: 1, failed: 0 }, "without callgrind");
    }
}
