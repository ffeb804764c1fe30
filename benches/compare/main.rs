//! Runs the benches and puts what they found beside each other, as ratios: machines are noisy, ratios of one run less so.
//!
//! `--check` holds the counts that no busy machine changes (instructions, allocations, bytes) against the ceilings in
//! `benches/ceilings.toml`. It never looks at a clock.

mod ceilings;
mod figure;
mod plot;
mod programs;
mod ratio;

use std::process::ExitCode;

use anyhow::{Result, bail};

use self::{
    ceilings::Ceilings,
    figure::Figure,
    programs::{Programs, SUBJECTS, Subject},
};
use crate::console;
use crate::metadata::Workspace;
use crate::root;
use crate::tally::Tally;

/// What the words after `bench` ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    subject: Option<String>,
    json: bool,
    check: bool,
    set_ceilings: bool,
    plots: bool,
}

/// Does what the words after `bench` say. Standard output is the table, the JSON or the tally; all else is on stderr.
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
        for word in words {
            match word.as_str() {
                "--json" => asked.json = true,
                "--check" => asked.check = true,
                "--plots" => asked.plots = true,
                "--set-ceilings" => asked.set_ceilings = true,
                name if SUBJECTS.iter().any(|subject| subject.name == name) && asked.subject.is_none() => {
                    asked.subject = Some(name.to_owned());
                }
                other => {
                    let names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
                    bail!(
                        "`bench {other}`: expected {} or --json, --plots, --check, --set-ceilings",
                        names.join(", ")
                    );
                }
            }
        }
        Ok(asked)
    }

    /// False if a ceiling was broken.
    fn run(&self) -> Result<bool> {
        let workspace = Workspace::load(&root::find())?;
        let wanted = |subject: &&Subject| self.subject.as_ref().is_none_or(|name| name == subject.name);
        let subjects: Vec<Subject> = SUBJECTS.iter().filter(wanted).copied().collect();
        if self.check {
            let tally = check(&workspace, &subjects)?;
            console::say(tally);
            return Ok(tally.failed == 0);
        }
        if self.set_ceilings {
            let programs = Programs::build(&workspace, gates(SUBJECTS))?;
            let found = SUBJECTS.iter().map(|subject| Ok((subject.name, programs.count(*subject)?)));
            Ceilings::write(&workspace, &found.collect::<Result<Vec<_>>>()?)?;
            return Ok(true);
        }
        let programs = Programs::build(&workspace, subjects.iter().flat_map(|subject| subject.benches()))?;
        let mut ratios = Vec::new();
        for subject in subjects {
            let figures = programs.run(subject)?;
            if self.plots {
                plot::draw(&workspace, subject.name, &figures)?;
            }
            ratios.extend(ratio::of(subject.name, &figures));
        }
        if self.json {
            console::say(ratio::json(&ratios));
        } else {
            ratios.iter().for_each(console::say);
        }
        Ok(true)
    }
}

/// Holds every count against its ceiling.
pub(crate) fn check_all(workspace: &Workspace) -> Result<Tally> {
    check(workspace, SUBJECTS)
}

fn check(workspace: &Workspace, subjects: &[Subject]) -> Result<Tally> {
    let ceilings = Ceilings::read(workspace)?;
    let programs = Programs::build(workspace, gates(subjects))?;
    let mut tally = Tally::default();
    for subject in subjects.iter().copied() {
        let figures = programs.count(subject)?;
        tally += ceilings.check(subject.name, &figures);
    }
    Ok(tally)
}

fn gates(subjects: &[Subject]) -> impl Iterator<Item = &'static str> {
    subjects.iter().flat_map(|subject| subject.gates()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Asked> {
        Asked::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_subject_and_flags_are_understood_in_any_order() {
        let asked = parse("--json limiter").unwrap();
        assert_eq!(asked, Asked { subject: Some("limiter".into()), json: true, ..Asked::default() });
        assert_eq!(parse("--check").unwrap(), Asked { check: true, ..Asked::default() });
    }

    #[test]
    fn what_is_no_subject_is_refused_with_those_there_are() {
        let refused = parse("limitr").unwrap_err().to_string();
        assert!(refused.contains("limitr") && refused.contains("limiter, overhead, burst"), "{refused}");
        assert!(parse("limiter burst").is_err());
    }
}
