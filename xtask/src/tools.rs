use std::env;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::console;
use crate::report::Tally;
use crate::runner::{self, echo};
use crate::workspace::Workspace;

/// The system tools that tests may start, each with the package that has it. A crate whose tests need one says so in its
/// manifest:
///
/// ```toml
/// [package.metadata.xtask]
/// system-tools = ["strace"]
/// ```
const KNOWN: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("kill", "procps"),
    ("script", "bsdutils"),
    ("strace", "strace"),
    ("stty", "coreutils"),
    ("unshare", "util-linux"),
    ("valgrind", "valgrind"),
];

/// Makes sure that every system tool that some package's tests need is there: installs those that are missing with
/// apt-get, or fails before anything runs, with the line to type.
pub(crate) fn ensure(workspace: &Workspace, installs: bool) -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let packages = missing_packages(workspace, &path)?;
    if packages.is_empty() {
        return Ok(());
    }
    if !installs {
        let sudo = if is_root() { "" } else { "sudo " };
        let names = packages.join(" ");
        bail!("the tests need system packages; type:\n\n    {sudo}apt-get install --yes {names}\n")
    }
    apt_get(&["update"])?;
    apt_get(&[&["install", "--yes"], packages.as_slice()].concat())?;
    let still = missing_packages(workspace, &path)?;
    ensure!(still.is_empty(), "installed, but still not found: {}", still.join(", "));
    Ok(())
}

fn missing_packages(workspace: &Workspace, path: &OsStr) -> Result<Vec<&'static str>> {
    let mut packages = Vec::new();
    for member in &workspace.members {
        for needed in member.system_tools() {
            let (program, package) =
                KNOWN.iter().find(|(program, _)| *program == needed).with_context(|| {
                    format!("`{}` needs the system tool `{needed}`, which xtask does not know", member.name)
                })?;
            let found = env::split_paths(path).any(|folder| folder.join(program).is_file());
            if !found && !packages.contains(package) {
                packages.push(*package);
            }
        }
    }
    Ok(packages)
}

fn apt_get(words: &[&str]) -> Result<()> {
    let mut command = Command::new(if is_root() { "apt-get" } else { "sudo" });
    if !is_root() {
        // Never asks for a password: nothing could answer.
        command.args(["-n", "apt-get"]);
    }
    command.env("DEBIAN_FRONTEND", "noninteractive").args(words);
    console::say(format_args!("apt-get {}", words.join(" ")));
    let report = runner::check(&mut command, None, echo)?;
    ensure!(report.tally == Tally::SUCCESS, "apt-get {} failed", words.join(" "));
    Ok(())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Member;

    fn missing(tools: &[&str]) -> Result<Vec<&'static str>> {
        let member = Member::of("steadfast-dedup", "crates/steadfast-dedup", Vec::new(), tools);
        let workspace = Workspace { root: "/".into(), target: "/target".into(), members: vec![member] };
        missing_packages(&workspace, OsStr::new("/nowhere"))
    }

    #[test]
    fn a_needed_tool_is_missing_once_and_an_unknown_one_is_named() {
        assert_eq!(missing(&["strace", "ip", "strace"]).unwrap(), ["strace", "iproute2"]);
        assert!(missing(&["gdb"]).unwrap_err().to_string().contains("`gdb`"));
    }
}
