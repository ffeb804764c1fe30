use std::env;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::console;
use crate::metadata::Workspace;
use crate::process;

/// The system tools that tests may start. A package whose tests need one says so in its manifest:
///
/// ```toml
/// [package.metadata.xtask]
/// system-tools = ["strace"]
/// ```
const KNOWN: &[Tool] = &[
    Tool { program: "ip", package: "iproute2" },
    Tool { program: "kill", package: "procps" },
    Tool { program: "script", package: "bsdutils" },
    Tool { program: "strace", package: "strace" },
    Tool { program: "stty", package: "coreutils" },
    Tool { program: "unshare", package: "util-linux" },
    Tool { program: "valgrind", package: "valgrind" },
];

struct Tool {
    program: &'static str,
    package: &'static str,
}

/// What to do about a needed tool that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Fail before anything runs, with the line to type.
    Refuse,
    /// Install it with apt-get.
    Install,
}

/// Makes sure that every system tool that some package's tests need is there.
pub(crate) fn ensure(workspace: &Workspace, missing: Missing) -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let packages = missing_packages(workspace, &path)?;
    if packages.is_empty() {
        return Ok(());
    }
    match missing {
        Missing::Refuse => {
            let sudo = if is_root() { "" } else { "sudo " };
            let names = packages.join(" ");
            bail!("the tests need system packages; type:\n\n    {sudo}apt-get install --yes {names}\n")
        }
        Missing::Install => {
            apt_get(&["update"])?;
            apt_get(&[&["install", "--yes"], packages.as_slice()].concat())?;
            let still = missing_packages(workspace, &path)?;
            ensure!(still.is_empty(), "installed, but still not found: {}", still.join(", "));
            Ok(())
        }
    }
}

fn missing_packages(workspace: &Workspace, path: &OsStr) -> Result<Vec<&'static str>> {
    let mut packages = Vec::new();
    for member in &workspace.members {
        for needed in &member.system_tools {
            let tool = KNOWN.iter().find(|tool| tool.program == needed).with_context(|| {
                format!("`{}` needs the system tool `{needed}`, which xtask does not know", member.name)
            })?;
            let found = env::split_paths(path).any(|folder| folder.join(tool.program).is_file());
            if !found && !packages.contains(&tool.package) {
                packages.push(tool.package);
            }
        }
    }
    Ok(packages)
}

fn apt_get(words: &[&str]) -> Result<()> {
    let mut command = if is_root() {
        Command::new("apt-get")
    } else {
        // Never asks for a password: there is nobody to answer.
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").args(words);
    console::say(format_args!("apt-get {}", words.join(" ")));
    let ending = process::stream(&mut command, None, |_, line| console::say(line))?;
    ending.failure().map_or(Ok(()), |why| bail!("apt-get {} failed: {why}", words.join(" ")))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Member;

    fn workspace(tools: &[&str]) -> Workspace {
        let member = Member {
            name: "steadfast-dedup".to_owned(),
            folder: "crates/steadfast-dedup".into(),
            dependencies: Vec::new(),
            examples: Vec::new(),
            system_tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        };
        Workspace { root: "/".into(), target: "/target".into(), members: vec![member] }
    }

    #[test]
    fn a_tool_that_nobody_needs_is_not_asked_for() {
        assert!(missing_packages(&workspace(&[]), OsStr::new("")).unwrap().is_empty());
    }

    #[test]
    fn a_needed_tool_that_is_not_on_the_path_is_missing_once() {
        let packages =
            missing_packages(&workspace(&["strace", "valgrind", "strace"]), OsStr::new("/nowhere"));
        assert_eq!(packages.unwrap(), ["strace", "valgrind"]);
    }

    #[test]
    fn a_tool_that_xtask_does_not_know_is_named() {
        let error = missing_packages(&workspace(&["gdb"]), OsStr::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("`gdb`"));
    }
}
