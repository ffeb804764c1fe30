//! The evidence behind each promise: what was run, how much of it, and the result. `xtask/evidence.toml` has the rows.
//!
//! The deep stages of CI end with the same table. A row without its figures has failed: silence proves nothing. The results
//! of long runs are in `xtask/campaign.toml` and on the page, and are written there by hand.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::deep::{self, Deep, Extent};
use crate::figures::{Figures, Measured};
use crate::planted::{self, Tree};
use crate::programs::Programs;
use crate::report::{Report, Tally};
use crate::repository::Repository;
use crate::tidy;
use crate::workspace::Workspace;
use crate::{cargo, console};

const ROWS: &str = include_str!("../evidence.toml");

/// A row, and a bug with which it cannot hold.
const DENIED: (&str, &str) = ("F14", "token-logged");

/// The name that rows give to the figures of the repository's files.
const FILES: &str = "files";

/// The page that shows the table.
const PAGE: &str = "docs/evidence.md";
const HEAD: &str = "| | what | target | measured | seeds | holds |\n|---|---|---|---|---|---|\n";
/// The beginning of the line that names the measured state of the code.
const STATE: &str = "State of `crates` (`git rev-parse --short=12 HEAD:crates`): `";

/// The evidence behind each promise, measured again by the deep stages that each row names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// One row, F1 to F19.
    #[arg(long, value_name = "ID", value_parser = known)]
    only: Option<String>,
    /// Measures the row with a bug planted in the code, which must fail it.
    #[arg(long, value_name = "NAME", requires = "only", value_parser = planted::known)]
    planted: Option<String>,
    /// Prints JSON, one object a row.
    #[arg(long, conflicts_with = "write")]
    json: bool,
    /// Writes the table into docs/evidence.md.
    #[arg(long, conflicts_with_all = ["only", "planted"])]
    write: bool,
}

/// One figure of the evidence.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// F1 to F19.
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
    /// The seeds of each stage that says which it ran.
    seeds: String,
}

/// Measures the rows and prints them. Standard output is the table or the JSON; all else is on stderr.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    console::keep_stdout_for_data();
    let wanted = rows(|id| args.only.as_ref().is_none_or(|only| only == id))?;
    let stages = stages_of(&wanted);
    let takes_bugs = !stages.is_empty() && stages.iter().all(|stage| stage.takes_bugs());
    let bug = args.planted.as_deref();
    ensure!(
        bug.is_none() || takes_bugs,
        "the row runs neither tests nor the simulator: no bug can be planted"
    );
    let build = |say: &mut dyn FnMut(&str)| deep::build(&stages, workspace, bug, say);
    let (judged, stages) = measure(wanted, workspace, build)?;
    let state = cargo::state(&workspace.root).unwrap_or_else(|| "unknown".to_owned());
    if args.json {
        console::data(Value::Array(judged.iter().map(|judged| judged.json(&state)).collect()));
    } else {
        console::data(format_args!("{STATE}{state}`.\n\n{}", table(&judged)));
    }
    if args.write {
        let path = workspace.root.join(PAGE);
        fs::write(&path, replaced(&fs::read_to_string(&path)?, &state, &table(&judged))?)?;
    }
    Ok(judged.iter().map(|judged| Tally::of(judged.holds)).sum::<Tally>() + stages)
}

/// Judges every row by the figures of the stages, prints the table, counts each row, and names those that do not hold.
pub(crate) fn conclude(workspace: &Workspace, mut figures: Figures) -> Result<(Tally, Vec<String>)> {
    let judged = judge(rows(|_| true)?, workspace, &mut figures)?;
    console::say(table(&judged));
    let broken = judged.iter().filter(|judged| !judged.holds);
    let broken = broken.map(|judged| format!("{}: {}", judged.row.id, judged.value)).collect();
    Ok((judged.iter().map(|judged| Tally::of(judged.holds)).sum(), broken))
}

/// Demands that a row is denied with a bug: a table that always says yes would prove nothing.
pub(crate) fn deny(workspace: &Workspace, say: &mut dyn FnMut(&str)) -> Result<Report> {
    let (id, bug) = DENIED;
    let programs = planted::build(&Tree::plant(workspace)?, say)?.with(Some(bug));
    let (judged, _) = measure(rows(|row| row == id)?, workspace, |_| Ok(programs))?;
    let [Judged { holds: false, value, .. }] = &judged[..] else { bail!("{id} holds with {bug}") };
    ensure!(
        value.contains(" leaks") && !value.contains(" 0 leaks"),
        "no leak was measured of {id} with {bug}: {value}"
    );
    say(&format!("denied  {id} with {bug}: {value}"));
    Ok(Report::of_tests(Tally::SUCCESS, None))
}

/// Runs the stages that these rows need; the results of their own checks are returned beside.
fn measure(
    rows: Vec<Row>,
    workspace: &Workspace,
    build: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Programs>,
) -> Result<(Vec<Judged>, Tally)> {
    let mut figures = Figures::default();
    let summary = deep::run(&stages_of(&rows), workspace, build, &mut figures);
    console::say(format_args!("\n{summary}"));
    Ok((judge(rows, workspace, &mut figures)?, summary.tally()))
}

fn stages_of(rows: &[Row]) -> Vec<Deep> {
    let wanted: BTreeSet<&str> = rows.iter().flat_map(|row| &row.stages).map(String::as_str).collect();
    deep::all(Extent::Full).filter(|stage| wanted.contains(stage.key)).collect()
}

fn known(id: &str) -> Result<String> {
    ensure!(!rows(|row| row == id)?.is_empty(), "expected F1 to F19");
    Ok(id.to_owned())
}

fn rows(is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Row>> {
    let table: Table = toml::from_str(ROWS).context("xtask/evidence.toml")?;
    Ok(table.row.into_iter().filter(|row| is_wanted(&row.id)).collect())
}

fn judge(rows: Vec<Row>, workspace: &Workspace, figures: &mut Figures) -> Result<Vec<Judged>> {
    let mut files = Measured::default();
    files.read(&tidy::figures(&Repository::read(&workspace.root)?));
    figures.insert(FILES, files);
    Ok(rows.into_iter().map(|row| row.judge(figures)).collect())
}

impl Row {
    fn judge(self, figures: &Figures) -> Judged {
        let told = |row: &Self| Ok::<_, anyhow::Error>((row.are_met(figures)?, row.filled(figures)?));
        let (mut holds, mut value) =
            told(&self).unwrap_or_else(|error| (false, format!("not measured: {error:#}")));
        for stage in self.stages.iter().filter(|stage| figures.is_failed(stage)) {
            holds = false;
            value += &format!("; stage `{stage}` failed");
        }
        let seeds = |stage: &String| Some(format!("{stage} {}", figures.word(stage, "seed_range")?));
        let seeds: Vec<String> = self.stages.iter().filter_map(seeds).collect();
        Judged { row: self, holds, value, seeds: seeds.join(", ") }
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
            figures.number(stage, name).with_context(|| format!("`{name}` of stage `{stage}`"))
        };
        match name.split_once('.') {
            Some((stage, name)) => one(stage, name),
            None => self.stages.iter().map(|stage| one(stage, name)).sum(),
        }
    }
}

impl Judged {
    fn json(&self, state: &str) -> Value {
        json!({
            "id": self.row.id,
            "value": self.value,
            "target": self.row.target,
            "pass": self.holds,
            "command": format!("cargo xtask evidence --only {}", self.row.id),
            "crates": state,
            "seeds": self.seeds,
        })
    }
}

fn table(judged: &[Judged]) -> String {
    let row = |Judged { row, holds, value, seeds }: &Judged| {
        let Row { id, what, target, .. } = row;
        let holds = if *holds { "yes" } else { "**no**" };
        format!("| {id} | {what} | {target} | {value} | {seeds} | {holds} |\n")
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

    fn judged(said: &str, is_failed: bool) -> Judged {
        let (mut measured, mut figures) = (Measured::default(), Figures::default());
        measured.read(said);
        if is_failed {
            measured.fail();
        }
        figures.insert("scripts", measured);
        rows(|id| id == "F7").unwrap().remove(0).judge(&figures)
    }

    #[test]
    fn a_row_holds_by_its_figures_and_not_without_them() {
        let good = judged("figures: scripts=31386 violations=0 seed_range=0..3", false);
        assert_eq!(
            (good.holds, &*good.value, &*good.seeds),
            (true, "31,386 scripts, 0 violations", "scripts 0..3")
        );
        assert!(!judged("figures: scripts=9 violations=2", false).holds);
        let silent = judged("figures: scripts=9", false);
        assert_eq!((silent.holds, &*silent.value), (false, "not measured: `violations` of stage `scripts`"));
        assert!(!judged("figures: scripts=9 violations=0", true).holds, "its stage failed");
    }

    #[test]
    fn every_row_is_well_formed_and_fails_without_figures() {
        let keys: BTreeSet<&str> = deep::all(Extent::Full).map(|stage| stage.key).chain([FILES]).collect();
        for row in rows(|_| true).unwrap() {
            assert!(row.stages.iter().all(|stage| keys.contains(stage.as_str())), "{}", row.id);
            let judged = row.judge(&Figures::default());
            assert!(!judged.holds && judged.value.starts_with("not measured: `"), "{}", judged.row.id);
        }
    }

    #[test]
    fn rows_of_files_hold_and_the_page_can_be_written_again() {
        let workspace = Workspace::load(&cargo::root()).unwrap();
        let judged = judge(rows(|id| id == "F17").unwrap(), &workspace, &mut Figures::default());
        assert!(judged.unwrap().iter().all(|judged| judged.holds));
        let page = fs::read_to_string(cargo::root().join(PAGE)).unwrap();
        let written = replaced(&page, "c15a1be7b1a5", &format!("{HEAD}| F1 |\n")).unwrap();
        assert!(
            written.contains("crates`): `c15a1be7b1a5`") && written.contains("---|\n| F1 |\n\nResults"),
            "{written}"
        );
    }
}
