use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::console;
use crate::metadata::{Example, Workspace};
use crate::process::{self, Pipe};
use crate::report::{Report, Verdict};
use crate::root::cargo;
use crate::runner;
use crate::tally::Tally;

/// An example shows one thing and ends; this is its whole time.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs every example of the `examples` package once.
///
/// Each states in its module documentation what a reader will see, one line for each text:
/// `//! Prints: placed 1 order`. The run fails if stdout does not contain it.
pub(crate) fn stage(workspace: &Workspace) -> Result<Report> {
    let Some(member) = workspace.member("examples") else {
        return Ok(Report::skipped("there is no `examples` package"));
    };
    if member.examples.is_empty() {
        return Ok(Report::failed("the `examples` package has no example", Tally::default()));
    }
    let built = runner::check(cargo(&workspace.root).args(["build", "--workspace", "--examples"]))?;
    if built.verdict != Verdict::Passed {
        return Ok(built);
    }
    let mut tally = Tally::default();
    for example in &member.examples {
        console::say(format_args!("--- {} ---", example.name));
        match run(workspace, example)? {
            None => tally += Tally::SUCCESS,
            Some(why) => {
                console::say(format_args!("example `{}` failed: {why}", example.name));
                tally += Tally::FAILURE;
            }
        }
    }
    Ok(Report::of_tests(tally, None))
}

/// Returns why the example failed, or `None`.
fn run(workspace: &Workspace, example: &Example) -> Result<Option<String>> {
    let source = fs::read_to_string(&example.source)
        .with_context(|| format!("{} is not readable", example.source.display()))?;
    let expected = expected_lines(&source);
    if expected.is_empty() {
        return Ok(Some("its source has no `//! Prints: ` line".to_owned()));
    }
    let program =
        workspace.target.join("debug").join("examples").join(format!("{}{EXE_SUFFIX}", example.name));
    let mut printed = String::new();
    let ending =
        process::stream(Command::new(program).current_dir(&workspace.root), Some(LIMIT), |pipe, line| {
            console::say(line);
            if pipe == Pipe::Out {
                printed.push_str(line);
                printed.push('\n');
            }
        })?;
    Ok(ending.failure().or_else(|| missing(&expected, &printed)))
}

fn expected_lines(source: &str) -> Vec<&str> {
    source.lines().filter_map(|line| line.strip_prefix("//! Prints: ")).map(str::trim).collect()
}

fn missing(expected: &[&str], printed: &str) -> Option<String> {
    let absent = expected.iter().find(|text| !printed.contains(**text))?;
    Some(format!("stdout has no `{absent}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! Places an order.\n//!\n//! Prints: placed 1 order\n\nfn main() {}\n";

    #[test]
    fn the_expected_text_is_read_from_the_module_documentation() {
        assert_eq!(expected_lines(SOURCE), ["placed 1 order"]);
        assert!(expected_lines("//! Places an order.\nfn main() {}").is_empty());
    }

    #[test]
    fn an_example_that_does_not_print_its_line_is_found_out() {
        let expected = expected_lines(SOURCE);
        assert_eq!(missing(&expected, "12:00 placed 1 order\n"), None);
        assert_eq!(missing(&expected, "placed 0 orders\n").unwrap(), "stdout has no `placed 1 order`");
    }

    #[test]
    fn a_workspace_without_examples_says_so() {
        let workspace = Workspace { root: "/".into(), target: "/target".into(), members: Vec::new() };
        let report = stage(&workspace).unwrap();
        assert_eq!(report.verdict, Verdict::Skipped("there is no `examples` package".to_owned()));
    }
}
