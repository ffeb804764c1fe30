use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The contender that all others are peers of.
pub(super) const OURS: &str = "steadfast";

/// One number that a bench found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) case: String,
    pub(super) who: String,
    pub(super) value: f64,
    pub(super) unit: String,
}

impl Figure {
    /// Reads a line that a bench wrote: case, who, value and unit, with tabs between them.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let (case, who, value, unit) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let value = value.parse().ok()?;
        fields.next().is_none().then(|| Self { case: case.into(), who: who.into(), value, unit: unit.into() })
    }

    /// Reads what criterion measured into `home`, in the order in which it did.
    pub(super) fn of_criterion(home: &Path) -> Result<Vec<Self>> {
        let mut measured = Vec::new();
        for case in fs::read_dir(home).with_context(|| format!("{} is not readable", home.display()))? {
            let case = case?.path();
            if !case.is_dir() {
                continue;
            }
            for who in fs::read_dir(case)? {
                let new = who?.path().join("new");
                // Beside the contenders there is a report on all of them.
                if new.join("benchmark.json").is_file() {
                    let when = fs::metadata(new.join("estimates.json"))?.modified()?;
                    measured.push((when, Self::median(&new)?));
                }
            }
        }
        measured.sort_by_key(|(when, _)| *when);
        Ok(measured.into_iter().map(|(_, figure)| figure).collect())
    }

    fn median(new: &Path) -> Result<Self> {
        let json = |name: &str| -> Result<Value> {
            let path = new.join(name);
            let text =
                fs::read_to_string(&path).with_context(|| format!("{} is not readable", path.display()))?;
            Ok(serde_json::from_str(&text)?)
        };
        let (about, estimates) = (json("benchmark.json")?, json("estimates.json")?);
        let text =
            |key: &str| about[key].as_str().map(str::to_owned).context("criterion's files have changed");
        Ok(Self {
            case: text("group_id")?,
            who: text("function_id")?,
            value: estimates["median"]["point_estimate"]
                .as_f64()
                .context("criterion's files have changed")?,
            unit: "ns".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_four_fields_and_one_of_them_is_a_number() {
        let figure = Figure::parse("acquire, two windows\tgovernor ×2\t55.5\tinstructions").unwrap();
        assert_eq!((figure.who.as_str(), figure.value), ("governor ×2", 55.5));
        for line in ["", "a\tb\tc\td", "a\tb\t1", "a\tb\t1\tns\tmore", "acquire: 3 ns"] {
            assert_eq!(Figure::parse(line), None, "{line}");
        }
    }
}
