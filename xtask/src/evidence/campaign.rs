//! What long runs came to: figures that no CI run has the time for, kept in `xtask/campaign.toml`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use toml::Table;

/// The figures of long runs, as they were written down.
#[derive(Debug, Default)]
pub(super) struct Campaign(Vec<Entry>);

/// One figure of one long run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The row of the table that it belongs to.
    row: String,
    pub(super) figure: String,
    pub(super) command: String,
    /// The hash of the folder `crates` that was measured, as `git rev-parse HEAD:crates` tells it.
    pub(super) crates: String,
    pub(super) date: String,
}

impl Campaign {
    pub(super) const PATH: &str = "xtask/campaign.toml";

    pub(super) fn read(root: &Path) -> Result<Self> {
        let file = root.join(Self::PATH);
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        Self::parse(&text).context(Self::PATH)
    }

    /// Tables named after their rows, each a list: one row may have several long runs behind it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for (row, runs) in &text.parse::<Table>()? {
            let runs = runs.as_array().with_context(|| format!("{row} is not a list: `[[{row}]]`"))?;
            for run in runs {
                let word = |name: &str| {
                    let word = run.get(name).and_then(toml::Value::as_str).map(str::to_owned);
                    word.filter(|word| !word.is_empty()).with_context(|| format!("{row} lacks its {name}"))
                };
                let known = ["figure", "command", "crates", "date"];
                let words = run.as_table().into_iter().flat_map(Table::keys);
                for name in words {
                    ensure!(known.contains(&name.as_str()), "{row} has an unknown `{name}`");
                }
                let [figure, command, crates, date] = known.map(word);
                entries.push(Entry {
                    row: row.clone(),
                    figure: figure?,
                    command: command?,
                    crates: crates?,
                    date: date?,
                });
            }
        }
        Ok(Self(entries))
    }

    pub(super) fn of<'a>(&'a self, row: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.0.iter().filter(move |entry| entry.row == row)
    }
}

impl Entry {
    pub(super) fn json(&self) -> serde_json::Value {
        let Self { figure, command, crates, date, .. } = self;
        serde_json::json!({ "figure": figure, "command": command, "crates": crates, "date": date })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::table;
    use crate::root;

    const TEXT: &str = "
        [[F8]]
        figure = '3,000,000 images'
        command = 'cargo test'
        crates = 'c15a1be7b1a5'
        date = '2026-11-22'
    ";

    #[test]
    fn a_run_is_found_by_its_row() {
        let campaign = Campaign::parse(TEXT).unwrap();
        let figures: Vec<&str> = campaign.of("F8").map(|entry| entry.figure.as_str()).collect();
        assert_eq!(figures, ["3,000,000 images"]);
        assert_eq!(campaign.of("F9").count(), 0);
    }

    #[test]
    fn a_figure_without_the_code_it_is_of_is_refused() {
        for line in TEXT.lines().filter(|line| line.contains('=')) {
            let error = Campaign::parse(&TEXT.replace(line, "")).unwrap_err();
            assert!(error.to_string().contains("lacks"), "{line}: {error}");
        }
        assert!(Campaign::parse(&TEXT.replace("date", "day")).is_err());
    }

    #[test]
    fn the_runs_that_are_kept_belong_to_rows_that_exist() {
        let Campaign(entries) = Campaign::read(&root::find()).unwrap();
        for entry in entries {
            assert!(table::TABLE.iter().any(|row| row.id == entry.row), "{}", entry.row);
        }
    }
}
