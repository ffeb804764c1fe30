//! The evidence behind each promise: what was run, how much of it, and the result. `xtask/evidence.toml` has the rows.
//!
//! The deep stages of CI end with the same table. A row without its figures has failed: silence proves nothing. The results
//! of long runs are in `xtask/campaign.toml` and on the page, and are written there by hand.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::deep::{self, Deep};
use crate::extent::Extent;
use crate::figures::Figures;
use crate::report::Tally;
use crate::workspace::Workspace;
use crate::{cargo, console};

const ROWS: &str = include_str!("../evidence.toml");

/// The page that shows the table.
const PAGE: &str = "docs/evidence.md";
const HEAD: &str = "| | what | target | measured | holds |\n|---|---|---|---|---|\n";
/// The beginning of the line that names the measured state of the code.
const STATE: &str = "State of `crates` (`git rev-parse --short=12 HEAD:crates`): `";

/// The evidence behind each promise, measured again by the deep stages that each row names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One row, F1 to F30.
    #[arg(long, value_name = "ID", value_parser = known)]
    only: Option<String>,
    /// Writes the table into docs/evidence.md.
    #[arg(long, conflicts_with = "only")]
    write: bool,
}

/// One figure of the evidence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// F1 to F30.
    id: String,
    what: String,
    target: String,
    stages: Vec<String>,
    value: String,
    holds: Vec<String>,
}

#[derive(Deserialize)]
struct Table {
    row: Vec<Row>,
}

/// A row with its result.
struct Judged {
    row: Row,
    holds: bool,
    value: String,
}

/// Runs the stages that the wanted rows need.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let wanted = rows(|id| args.only.as_ref().is_none_or(|only| only == id))?;
    let needed: BTreeSet<&str> = wanted.iter().flat_map(|row| &row.stages).map(String::as_str).collect();
    let stages = deep::all()?.into_iter().filter(|stage| needed.contains(&*stage.key)).collect();
    measure(workspace, stages, Extent::Full, wanted, args.write)
}

/// Runs the deep stages of CI. A row with a stage that is not in turn is left out.
pub(crate) fn run_all(workspace: &Workspace, extent: Extent, write: bool) -> Result<Tally> {
    let stages = deep::of(extent, workspace)?;
    let runs = |key: &String| stages.iter().any(|stage| stage.key == *key);
    let mut wanted = rows(|_| true)?;
    wanted.retain(|row| row.stages.iter().all(runs));
    measure(workspace, stages, extent, wanted, write)
}

/// Runs these stages, judges these rows by their figures, and says at the end what failed.
fn measure(
    workspace: &Workspace,
    stages: Vec<Deep>,
    extent: Extent,
    rows: Vec<Row>,
    write: bool,
) -> Result<Tally> {
    let mut figures = Figures::default();
    let build = |pace, say: &mut dyn FnMut(&str)| deep::build(&stages, pace, workspace, say);
    let summary = deep::run(&stages, extent, workspace, build, &mut figures);
    let judged: Vec<Judged> = rows.into_iter().map(|row| row.judge(&figures)).collect();
    let state = cargo::state(&workspace.root).unwrap_or_else(|| "unknown".to_owned());
    console::say(format_args!("\n{summary}\n{STATE}{state}`.\n\n{}", table(&judged)));
    if write {
        let path = workspace.root.join(PAGE);
        fs::write(&path, replaced(&fs::read_to_string(&path)?, &state, &table(&judged))?)?;
    }
    let broken = judged.iter().filter(|judged| !judged.holds);
    let broken = broken.map(|judged| format!("{}: {}", judged.row.id, judged.value)).collect();
    console::tell(&[summary.failures(), broken].concat());
    Ok(judged.iter().map(|judged| Tally::of(judged.holds)).chain([summary.tally()]).sum())
}

fn known(id: &str) -> Result<String> {
    ensure!(!rows(|row| row == id)?.is_empty(), "no row of xtask/evidence.toml");
    Ok(id.to_owned())
}

fn rows(is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let table: Table = toml::from_str(ROWS).context("xtask/evidence.toml")?;
    Ok(table.row.into_iter().filter(|row| is_wanted(&row.id)).collect())
}

impl Row {
    fn judge(self, figures: &Figures) -> Judged {
        let told = |row: &Self| Ok::<_, anyhow::Error>((row.are_met(figures)?, row.filled(figures)?));
        let (mut holds, mut value) =
            told(&self).unwrap_or_else(|error| (false, format!("not measured: {error:#}")));
        for stage in self.stages.iter().filter(|stage| figures.get(*stage).is_some_and(|of| of.is_failed)) {
            holds = false;
            value += &format!("; stage `{stage}` failed");
        }
        Judged { row: self, holds, value }
    }

    /// True if every condition is met: a name or number, `=`, `>=` or `<=`, and another.
    fn are_met(&self, figures: &Figures) -> Result<bool> {
        let mut are_met = true;
        for condition in &self.holds {
            let [left, sign, right] = condition.split(' ').collect::<Vec<_>>()[..] else {
                bail!("`{condition}` is no condition");
            };
            let side = |word: &str| word.parse().or_else(|_| self.sum(word, figures));
            let (left, right) = (side(left)?, side(right)?);
            are_met &= match sign {
                "=" => left == right,
                ">=" => left >= right,
                "<=" => left <= right,
                _ => bail!("`{sign}` is none of =, >=, <="),
            };
        }
        Ok(are_met)
    }

    /// The measured value, with a number for each `{name}`.
    fn filled(&self, figures: &Figures) -> Result<String> {
        let mut text = String::new();
        for (at, piece) in self.value.split(['{', '}']).enumerate() {
            // Every second piece stands in braces.
            text += &if at % 2 == 1 { count(self.sum(piece, figures)?) } else { piece.to_owned() };
        }
        Ok(text)
    }

    /// A figure of one stage, or its sum over all of the row's: each that ran has to say it, unless it stands for itself.
    fn sum(&self, name: &str, figures: &Figures) -> Result<f64> {
        let one = |stage: &str, name: &str| {
            figures
                .get(stage)
                .and_then(|of| of.numbers.get(name))
                .copied()
                .with_context(|| format!("`{name}` of stage `{stage}`"))
        };
        match name.split_once('.') {
            Some((stage, name)) => one(stage, name),
            None => self.stages.iter().map(|stage| one(stage, name)).sum(),
        }
    }
}

fn table(judged: &[Judged]) -> String {
    let row = |Judged { row, holds, value }: &Judged| {
        let Row { id, what, target, .. } = row;
        let holds = if *holds { "yes" } else { "**no**" };
        format!("| {id} | {what} | {target} | {value} | {holds} |\n")
    };
    HEAD.to_owned() + &judged.iter().map(row).collect::<String>()
}

/// Replaces the page's table, and the state of the code that it was measured with.
fn replaced(page: &str, state: &str, table: &str) -> Result<String> {
    let (before, after) = page.split_once(HEAD).context("the page has no such table")?;
    let rest: String = after.split_inclusive('\n').skip_while(|line| line.starts_with('|')).collect();
    let (start, old) = before.split_once(STATE).context("the page does not name its state")?;
    let (_, old) = old.split_once('`').context("the page does not name its state")?;
    Ok(format!("{start}{STATE}{state}`{old}{table}{rest}"))
}

/// A number with its thousands apart, `1,163,847`, or with the digits that it has behind the point.
fn count(value: f64) -> String {
    let text = value.to_string();
    let whole = text.split('.').next().unwrap_or_default().len();
    let mut apart = String::new();
    for (at, letter) in text.char_indices() {
        if (1..whole).contains(&at) && (whole - at).is_multiple_of(3) && !apart.ends_with('-') {
            apart.push(',');
        }
        apart.push(letter);
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Measured;

    fn judged(said: &str, is_failed: bool) -> Judged {
        let (mut measured, mut figures) = (Measured::default(), Figures::default());
        measured.read(said);
        measured.is_failed = is_failed;
        figures.insert("scripts".to_owned(), measured);
        rows(|id| id == "F7").unwrap().remove(0).judge(&figures)
    }

    #[test]
    fn a_row_holds_by_its_figures_and_not_without_them() {
        let good = judged("figures: scripts=31386 violations=0", false);
        assert_eq!((good.holds, &*good.value), (true, "31,386 scripts, 0 violations"));
        assert!(!judged("figures: scripts=9 violations=2", false).holds);
        let silent = judged("figures: scripts=9", false);
        assert_eq!((silent.holds, &*silent.value), (false, "not measured: `violations` of stage `scripts`"));
        assert!(!judged("figures: scripts=9 violations=0", true).holds, "its stage failed");
    }

    #[test]
    fn every_row_is_well_formed_and_fails_without_figures() {
        let keys: BTreeSet<String> = deep::all().unwrap().into_iter().map(|stage| stage.key).collect();
        for row in rows(|_| true).unwrap() {
            assert!(row.stages.iter().all(|stage| keys.contains(stage)), "{}", row.id);
            let judged = row.judge(&Figures::default());
            assert!(!judged.holds && judged.value.starts_with("not measured: `"), "{}", judged.row.id);
        }
    }

    #[test]
    fn the_page_can_be_written_again() {
        let page = fs::read_to_string(cargo::root().join(PAGE)).unwrap();
        let written = replaced(&page, "c15a1be7b1a5", &format!("{HEAD}| F1 |\n")).unwrap();
        assert!(
            written.contains("crates`): `c15a1be7b1a5`") && written.contains("---|\n| F1 |\n\nResults"),
            "{written}"
        );
    }
}
