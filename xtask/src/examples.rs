use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::console;
use crate::process::{self, Pipe};
use crate::report::{Report, Tally};
use crate::workspace::{Target, Workspace};

/// An example shows one thing and ends; this is its whole time.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs every example of the `examples` package once. The build stage has built them.
///
/// Each states in its module documentation what a reader will see, one line for each text:
/// `//! Prints: placed 1 order`. The run fails if stdout does not contain it.
pub(crate) fn stage(workspace: &Workspace) -> Result<Report> {
    let mut tally = Tally::default();
    for example in workspace.member("examples")?.examples() {
        console::say(format_args!("--- {} ---", example.name));
        let failure = run(workspace, example)?;
        if let Some(why) = &failure {
            console::say(format_args!("example `{}` failed: {why}", example.name));
        }
        tally += Tally::of(failure.is_none());
    }
    Ok(Report::of_tests(tally, None))
}

/// Returns why the example failed, or `None`.
fn run(workspace: &Workspace, example: &Target) -> Result<Option<String>> {
    let source = fs::read_to_string(&example.src_path)
        .with_context(|| format!("{} is not readable", example.src_path.display()))?;
    let program = workspace.target.join("debug/examples").join(format!("{}{EXE_SUFFIX}", example.name));
    let mut printed = String::new();
    let ending =
        process::stream(Command::new(program).current_dir(&workspace.root), Some(LIMIT), |pipe, line| {
            console::say(line);
            if pipe == Pipe::Out {
                printed.push_str(line);
                printed.push('\n');
            }
        })?;
    Ok(ending.failure().or_else(|| missing(&source, &printed)))
}

fn missing(source: &str, printed: &str) -> Option<String> {
    let mut expected = source.lines().filter_map(|line| line.strip_prefix("//! Prints: ")).peekable();
    if expected.peek().is_none() {
        return Some("its source has no `//! Prints: ` line".to_owned());
    }
    expected.find(|text| !printed.contains(text.trim())).map(|text| format!("stdout has no `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_that_does_not_print_its_line_is_found_out() {
        let source = "//! Places an order.\n//!\n//! Prints: placed 1 order\n\nfn main() {}\n";
        assert_eq!(missing(source, "12:00 placed 1 order\n"), None);
        assert_eq!(missing(source, "placed 0 orders\n").unwrap(), "stdout has no `placed 1 order`");
        assert!(missing("fn main() {}", "placed 1 order").is_some());
    }
}
