use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Figure;

/// The subject of figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// The bench that measures time, with criterion.
    timed: Option<&'static str>,
    /// The benches that count or simulate.
    counted: &'static [&'static str],
    /// True if what is counted is the same in every run, so that it can be held against a ceiling.
    gated: bool,
}

pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "limiter",
        timed: Some("limiter"),
        counted: &["instructions", "allocations", "memory"],
        gated: true,
    },
    Subject {
        name: "overhead",
        timed: Some("overhead"),
        counted: &["instructions", "allocations"],
        gated: true,
    },
    Subject { name: "burst", timed: None, counted: &["burst"], gated: false },
    Subject { name: "renewal", timed: None, counted: &["renewal"], gated: true },
    Subject { name: "proxy", timed: None, counted: &["proxy"], gated: false },
    // How often a socket is polled is up to the machine, so that its counts differ by a few in a hundred.
    Subject { name: "loopback", timed: None, counted: &["instructions", "allocations"], gated: false },
];

/// The benches, built.
pub(super) struct Programs {
    executables: HashMap<String, PathBuf>,
    folder: PathBuf,
}

impl Subject {
    /// The benches that count what is held against a ceiling.
    fn gates(self) -> &'static [&'static str] {
        if self.gated { self.counted } else { &[] }
    }

    /// All benches about it.
    pub(super) fn benches(self) -> impl Iterator<Item = &'static str> {
        self.timed.into_iter().chain(self.counted.iter().copied())
    }
}

impl Programs {
    /// Benches that are built already, by name.
    pub(super) fn of(folder: &Path, built: Vec<(String, PathBuf)>) -> Self {
        Self { executables: built.into_iter().collect(), folder: folder.to_owned() }
    }

    /// Builds these benches, and no others.
    pub(super) fn build(folder: &Path, benches: impl Iterator<Item = &'static str>) -> Result<Self> {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // `cargo run` describes this program in these variables. Build scripts that watch them would run again.
        for (name, _) in env::vars_os() {
            if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.to_string_lossy().starts_with(start))
            {
                command.env_remove(name);
            }
        }
        command.current_dir(folder).args(["bench", "--no-run", "--message-format=json-render-diagnostics"]);
        command.args(benches.flat_map(|bench| ["--bench", bench]));
        // An incremental build is another program: up to a fifth more instructions where little is done.
        command.env("CARGO_INCREMENTAL", "0").env("CARGO_TERM_COLOR", "never");
        let output = command.stderr(Stdio::inherit()).output().context("cargo did not start")?;
        ensure!(output.status.success(), "the benches do not compile");
        let messages = String::from_utf8_lossy(&output.stdout);
        Ok(Self::of(folder, messages.lines().filter_map(executable).collect()))
    }

    /// Every figure about a subject.
    pub(super) fn run(&self, subject: Subject) -> Result<Vec<Figure>> {
        let mut figures = match subject.timed {
            Some(bench) => self.time(bench)?,
            None => Vec::new(),
        };
        for bench in subject.counted {
            figures.extend(self.lines(bench, "--lines", subject)?);
        }
        Ok(figures)
    }

    /// Ours that are the same in every run.
    pub(super) fn count(&self, subject: Subject) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for bench in subject.gates() {
            figures.extend(self.lines(bench, "--ours", subject)?);
        }
        Ok(figures)
    }

    fn time(&self, bench: &str) -> Result<Vec<Figure>> {
        // The bench is in `release/deps` of cargo's target folder. Criterion leaves its figures beside them.
        let target = self.path(bench)?.ancestors().nth(3).context("the bench is in no target folder")?;
        let home = target.join("benches").join(bench);
        // A figure of an earlier run is none of this one.
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        let mut command = self.command(bench)?;
        watch(bench, command.arg("--bench").env("CRITERION_HOME", &home), |_| {})?;
        Figure::of_criterion(&home)
    }

    fn lines(&self, bench: &str, flag: &str, subject: Subject) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        let mut command = self.command(bench)?;
        watch(bench, command.args([flag, subject.name]), |line| figures.extend(Figure::parse(line)))?;
        Ok(figures)
    }

    fn command(&self, bench: &str) -> Result<Command> {
        let mut command = Command::new(self.path(bench)?);
        command.current_dir(&self.folder);
        Ok(command)
    }

    fn path(&self, bench: &str) -> Result<&Path> {
        let path = self.executables.get(bench).with_context(|| format!("there is no bench `{bench}`"))?;
        Ok(path)
    }
}

/// Runs a bench; each of its lines is shown to `out`, and goes to stderr.
fn watch(bench: &str, command: &mut Command, mut out: impl FnMut(&str)) -> Result<()> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    for line in BufReader::new(child.stdout.take().context("no stdout")?).lines() {
        let line = line?;
        out(&line);
        eprintln!("{line}");
    }
    let status = child.wait()?;
    ensure!(status.success(), "the bench `{bench}` failed: {status}");
    Ok(())
}

/// The name and the path of a bench that cargo says it has built.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = &message["target"];
    let is_bench = target["kind"].as_array()?.iter().any(|kind| kind == "bench");
    let path = message["executable"].as_str().filter(|_| is_bench)?;
    Some((target["name"].as_str()?.to_owned(), path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benches_are_found_among_what_cargo_says() {
        let bench = r#"{"reason":"compiler-artifact","target":{"kind":["bench"],"name":"burst"},"executable":"/t/burst-1"}"#;
        assert_eq!(executable(bench), Some(("burst".to_owned(), PathBuf::from("/t/burst-1"))));
        let library =
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"peers"},"executable":null}"#;
        assert_eq!(executable(library), None);
        assert_eq!(executable("   Compiling benches"), None);
    }
}
