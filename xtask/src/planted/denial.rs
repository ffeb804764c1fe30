//! The evidence has to deny its row once a bug is planted: a table that always says yes would prove nothing.

use std::env;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use crate::console;
use crate::metadata::Workspace;
use crate::process::{self, Ending, Pipe};
use crate::tally::Tally;

/// A row, and a bug with which it cannot hold.
const ROW: &str = "F7";
const BUG: &str = "no-settle";

/// One check: the command that measures the row again, with the bug, fails and says no.
pub(super) fn check(workspace: &Workspace) -> Result<Tally> {
    let mut command = Command::new(env::current_exe()?);
    command.current_dir(&workspace.root);
    command.args(["evidence", "--only", ROW, "--planted", BUG, "--json"]);
    let denied = denied(&mut command)?;
    match &denied {
        Ok(value) => console::say(format_args!("denied  {ROW} with {BUG}: {value}")),
        Err(why) => console::say(format_args!("FAILED  {ROW} with {BUG}: {why}")),
    }
    Ok(if denied.is_ok() { Tally::SUCCESS } else { Tally::FAILURE })
}

/// What was measured where it does not hold, or why that is no denial: a run that measures nothing has denied nothing.
fn denied(command: &mut Command) -> Result<Result<String, String>> {
    let mut json = String::new();
    let ending = process::stream(command, None, |pipe, line| match pipe {
        Pipe::Out => json.push_str(line),
        Pipe::Err => console::complain(line),
    })?;
    let rows: Value = serde_json::from_str(&json).unwrap_or_default();
    let value = rows[0]["value"].as_str().unwrap_or_default().to_owned();
    let exited = matches!(ending, Ending::Exited(status) if status.code() == Some(1));
    Ok(match rows[0]["pass"].as_bool() {
        Some(true) => Err(format!("the row holds: {value}")),
        Some(false) if !exited => {
            Err(format!("the row does not hold, and yet the command succeeds: {value}"))
        }
        Some(false) if value.contains(" 0 violations") || !value.contains("violations") => {
            Err(format!("no violation was measured: {value}"))
        }
        Some(false) => Ok(value),
        None => Err("the row was not judged".to_owned()),
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn of(pass: &str, value: &str, code: u8) -> Result<Result<String, String>> {
        let script = format!("echo '[{{\"pass\": {pass}, \"value\": \"{value}\"}}]'; exit {code}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        denied(&mut command)
    }

    #[test]
    fn a_row_with_violations_and_a_command_that_fails_are_a_denial() {
        assert_eq!(
            of("false", "9 scripts, 3 violations", 1).unwrap(),
            Ok("9 scripts, 3 violations".to_owned())
        );
    }

    #[test]
    fn a_row_that_holds_or_measured_nothing_or_a_command_that_succeeds_is_none() {
        for (pass, value, code) in [
            ("true", "9 scripts, 0 violations", 0),
            ("false", "9 scripts, 3 violations", 0),
            ("false", "9 scripts, 3 violations", 101),
            ("false", "9 scripts, 0 violations; stage `scripts` failed", 1),
            ("false", "not measured: `scripts` of stage `scripts`", 1),
            ("null", "", 1),
        ] {
            assert!(of(pass, value, code).unwrap().is_err(), "{pass} {value} {code}");
        }
        assert!(denied(&mut Command::new("true")).unwrap().is_err());
    }
}
