//! The evidence behind each promise: what was run, how much of it, and what it came to.
//!
//! | command | what it does |
//! |---|---|
//! | `cargo xtask evidence` | runs the stages that the rows need, and prints the table that docs/evidence.md shows |
//! | `cargo xtask evidence --only F8` | one row, with the stages that it needs |
//! | `cargo xtask evidence --only F7 --planted NAME` | the same over a build in which a bug is planted: it has to fail |
//! | `cargo xtask evidence --json` | the same as JSON, one object a row |
//!
//! The deep stages of CI end with the same tables. A row without its figures has failed: silence proves nothing. Below them
//! stands what long runs came to, with the state of the code that each was of.

mod campaign;
mod judge;
mod page;
mod row;
mod table;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use self::campaign::{Campaign, Entry};
pub(crate) use self::judge::Judgement;
pub(crate) use self::page::faults_of_page;
use self::row::Row;
use crate::console;
use crate::deep::{self, Deep, Figures};
use crate::metadata::Workspace;
use crate::planted;
use crate::root;
use crate::sim;
use crate::summary::Summary;
use crate::tally::Tally;

/// What the words after `evidence` ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    json: bool,
    only: Option<String>,
    planted: Option<String>,
}

/// Does what the words after `evidence` say. Standard output is the table or the JSON; all else is on stderr.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let asked = match Asked::parse(words) {
        Ok(asked) => asked,
        Err(error) => return console::misunderstood(&error),
    };
    match asked.run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            console::complain(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

impl Asked {
    fn parse(words: &[String]) -> Result<Self> {
        let mut asked = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--only" if asked.only.is_some() => bail!("`evidence --only`: one row, or all"),
                "--planted" if asked.planted.is_some() => bail!("`evidence --planted`: one bug at a time"),
                "--json" => asked.json = true,
                "--only" => match words.next() {
                    Some(id) if table::TABLE.iter().any(|row| row.id == id) => asked.only = Some(id.clone()),
                    id => {
                        let id = id.map_or("nothing", String::as_str);
                        bail!("`evidence --only`: expected F1 to F18, got {id}")
                    }
                },
                "--planted" => match words.next() {
                    Some(bug) if planted::is_known(bug) => asked.planted = Some(bug.clone()),
                    bug => {
                        let bug = bug.map_or("nothing", String::as_str);
                        bail!("`evidence --planted`: no bug is called {bug}")
                    }
                },
                other => bail!("`evidence {other}`: expected --json, --only ID or --planted NAME"),
            }
        }
        ensure!(asked.planted.is_none() || asked.only.is_some(), "`evidence --planted` needs --only ID");
        Ok(asked)
    }

    /// False if a promise does not hold.
    fn run(&self) -> Result<bool> {
        let workspace = Workspace::load(&root::find())?;
        let rows: Vec<&Row> =
            table::TABLE.iter().filter(|row| self.only.as_ref().is_none_or(|only| row.id == only)).collect();
        let wanted: BTreeSet<&str> = rows.iter().flat_map(|row| row.stages).copied().collect();
        let mut figures = Figures::default();
        console::keep_stdout_for_data();
        ensure!(
            self.planted.is_none() || !wanted.is_empty(),
            "the row is read from files: no bug changes it"
        );
        let stages: Vec<_> = deep::all().filter(|stage| wanted.contains(stage.key)).collect();
        ensure!(
            self.planted.is_none() || stages.iter().all(|stage| stage.takes_bugs()),
            "the row's stages run neither tests nor the simulator: no bug can be planted there"
        );
        let run = |stage: &Deep| match &self.planted {
            Some(bug) => stage.run_with(bug, &workspace, &mut figures),
            None => stage.run(&workspace, &mut figures),
        };
        let summary = Summary { rows: stages.into_iter().map(run).collect() };
        console::say(format_args!("\n{summary}"));
        let judged = judge_all(&rows, &workspace, &figures)?;
        if self.json {
            let array: Vec<Value> = judged.iter().map(Judged::json).collect();
            console::data(Value::Array(array));
        } else {
            console::data(page::of(&judged, self.planted.as_deref(), &workspace)?);
        }
        Ok(summary.tally().failed == 0 && judged.iter().all(|judged| judged.judgement.pass != Some(false)))
    }
}

/// Judges every row by what the stages measured, prints the table, counts each row that holds or does not, and names those
/// that do not.
pub(crate) fn conclude(workspace: &Workspace, figures: &Figures) -> Result<(Tally, Vec<String>)> {
    let rows: Vec<&Row> = table::TABLE.iter().collect();
    let judged = judge_all(&rows, workspace, figures)?;
    console::say(page::of(&judged, None, workspace)?);
    let broken = judged.iter().filter(|judged| judged.judgement.pass == Some(false));
    let broken = broken.map(|Judged { row, judgement, .. }| format!("{}: {}", row.id, judgement.value));
    Ok((judged.iter().map(Judged::tally).sum(), broken.collect()))
}

/// A row with what it came to.
struct Judged {
    row: &'static Row,
    judgement: Judgement,
    /// The seeds of each stage that says which it ran.
    seeds: Option<String>,
    campaign: Vec<Entry>,
    crates: String,
    commit: String,
}

fn judge_all(rows: &[&'static Row], workspace: &Workspace, figures: &Figures) -> Result<Vec<Judged>> {
    let known = |hash: Option<String>| hash.unwrap_or_else(|| "unknown".to_owned());
    let (crates, commit) = (known(sim::crates(&workspace.root)), known(sim::commit(&workspace.root)));
    let campaign = Campaign::read(&workspace.root)?;
    rows.iter()
        .map(|&row| {
            let judgement = row.judge(workspace, figures)?.unless_failed(row.stages, figures);
            let campaign = campaign.of(row.id).cloned().collect();
            let (crates, commit) = (crates.clone(), commit.clone());
            Ok(Judged { row, judgement, seeds: seeds(row, figures), campaign, crates, commit })
        })
        .collect()
}

/// `0..9`, or `orders 0..9, pipe 0..4` where more than one stage says which seeds it ran.
fn seeds(row: &Row, figures: &Figures) -> Option<String> {
    let ranges = row.stages.iter().filter_map(|stage| Some((stage, figures.word(stage, "seed_range")?)));
    match &ranges.collect::<Vec<_>>()[..] {
        [] => None,
        [(_, range)] => Some((*range).to_owned()),
        many => {
            let all: Vec<String> = many.iter().map(|(stage, range)| format!("{stage} {range}")).collect();
            Some(all.join(", "))
        }
    }
}

impl Judged {
    fn tally(&self) -> Tally {
        match self.judgement.pass {
            Some(true) => Tally::SUCCESS,
            Some(false) => Tally::FAILURE,
            None => Tally::default(),
        }
    }

    fn json(&self) -> Value {
        let Judgement { value, pass, na } = &self.judgement;
        serde_json::json!({
            "id": self.row.id,
            "value": value,
            "target": self.row.target,
            "pass": pass,
            "command": self.row.command(),
            "campaign": self.campaign.iter().map(Entry::json).collect::<Vec<_>>(),
            "commit": self.commit,
            "crates": self.crates,
            "seeds": self.seeds,
            "na": na,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Asked> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Asked::parse(&words)
    }

    #[test]
    fn one_row_and_json_can_be_asked_for() {
        let asked = Asked { json: true, only: Some("F8".to_owned()), planted: None };
        assert_eq!(parse("--json --only F8").unwrap(), asked);
        assert_eq!(parse("").unwrap(), Asked::default());
    }

    #[test]
    fn a_bug_is_planted_under_one_row() {
        let asked = parse("--only F7 --planted no-settle").unwrap();
        assert_eq!(asked.planted.as_deref(), Some("no-settle"));
        for line in ["--planted no-settle", "--only F7 --planted", "--only F7 --planted no-such-bug"] {
            assert!(parse(line).is_err(), "{line}");
        }
        // What is read from files does not change with a bug.
        assert!(parse("--only F17 --planted no-settle").unwrap().run().is_err());
    }

    #[test]
    fn unknown_rows_and_words_are_refused_by_name() {
        for line in ["--only", "--only F99", "--only F1 --only F2", "F8", "--all"] {
            assert!(parse(line).is_err(), "{line}");
        }
        assert_eq!(run(&["--all".to_owned()]), ExitCode::from(2));
        assert!(parse("--only F99").unwrap_err().to_string().contains("F99"));
    }

    #[test]
    fn every_row_names_stages_that_exist() {
        let keys: BTreeSet<&str> = deep::all().map(|stage| stage.key).collect();
        for row in table::TABLE {
            for stage in row.stages {
                assert!(keys.contains(stage), "{} needs `{stage}`", row.id);
            }
        }
    }

    #[test]
    fn a_table_without_figures_fails_in_every_row_that_stages_measure() {
        let workspace = Workspace::load(&root::find()).unwrap();
        let rows: Vec<&Row> = table::TABLE.iter().filter(|row| !row.stages.is_empty()).collect();
        for judged in judge_all(&rows, &workspace, &Figures::default()).unwrap() {
            assert_eq!(judged.judgement.pass, Some(false), "{}", judged.row.id);
        }
    }

    #[test]
    fn a_row_says_which_seeds_each_of_its_stages_ran() {
        let mut figures = Figures::default();
        figures.read("unbounded", "figures: seed_range=5..9");
        figures.read("orders", "figures: seed_range=5..700");
        figures.read("pipe", "figures: seed_range=5..30");
        let of = |id| seeds(table::TABLE.iter().find(|row| row.id == id).unwrap(), &figures);
        assert_eq!(of("F4").as_deref(), Some("5..9"));
        assert_eq!(of("F1").as_deref(), Some("orders 5..700, pipe 5..30"));
        assert_eq!(of("F17"), None);
    }
}
