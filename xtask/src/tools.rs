use std::env;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::console;
use crate::report::Tally;
use crate::runner::{self, echo};

/// The system programs that tests start, each with the package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("chromium", "chromium"),
    ("ip", "iproute2"),
    ("kill", "procps"),
    ("redis-server", "redis-server"),
    ("script", "bsdutils"),
    ("strace", "strace"),
    ("stty", "coreutils"),
    ("unshare", "util-linux"),
];

/// Makes sure that they are there: installs those that are missing with apt-get, or fails before anything runs, with the
/// line to type.
pub(crate) fn ensure(installs: bool) -> Result<()> {
    if installs && !missing().is_empty() {
        apt_get(&["update"])?;
        apt_get(&[&["install", "--yes"], &missing()[..]].concat())?;
    }
    let packages = missing().join(" ");
    ensure!(
        packages.is_empty(),
        "the tests start programs that are missing; `cargo xtask test --install` runs\n\n    \
         apt-get install --yes {packages}\n"
    );
    Ok(())
}

fn missing() -> Vec<&'static str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    PROGRAMS.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
}

fn apt_get(words: &[&str]) -> Result<()> {
    // Root needs no sudo, and a machine with root alone often has none. `-n`: nothing could answer a question.
    let as_root = "if [ \"$(id -u)\" = 0 ]; then exec apt-get \"$@\"; else exec sudo -n apt-get \"$@\"; fi";
    let mut command = Command::new("sh");
    command.args(["-c", as_root, "apt-get"]).env("DEBIAN_FRONTEND", "noninteractive").args(words);
    console::say(format_args!("apt-get {}", words.join(" ")));
    let report = runner::check(&mut command, None, echo)?;
    ensure!(report.tally == Tally::SUCCESS, "apt-get {} failed", words.join(" "));
    Ok(())
}
