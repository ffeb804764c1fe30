use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::cargo::{cargo, fix_draws};
use crate::process;
use crate::workspace::{Member, Workspace};

/// How the searches are built: the simulator, and the crates whose tests compute for long. Always all of them together, and
/// with the benches: fewer would have other features of their dependencies, and build those once more.
const OPTIMISED: &[&str] = &[
    "--profile=deep",
    "--package=benches",
    "--package=steadfast",
    "--package=steadfast-dedup",
    "--package=steadfast-limit",
    "--package=steadfast-redis",
    "--package=steadfast-retry",
    "--package=steadfast-sandbox",
    "--package=steadfast-verify",
];

/// How the benches that count are built: of the same dependencies, so that only the facade and its users are left to build. The
/// tests of the facade switch all of its features on, so it is left out here: what is counted is a client without `metrics`.
const COUNTED: &[&str] = &[
    "--profile=deep",
    "--package=benches",
    "--package=steadfast-dedup",
    "--package=steadfast-limit",
    "--package=steadfast-redis",
    "--package=steadfast-retry",
    "--package=steadfast-sandbox",
];

/// The benches whose counts have ceilings.
const COUNTS: &[&str] = &["allocations", "instructions", "memory", "renewal"];
/// The bench that compares how much costs grow in one run.
const GROWTH: &str = "growth";

/// As the plain tests are built, which has made nearly all of it.
const PLAIN: &[&str] = &["--workspace"];

/// The environment variable that turns a bug on in a copy with planted bugs.
pub(crate) const BUG: &str = "STEADFAST_PLANTED";

/// A tree to build, and how.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    root: PathBuf,
    /// The folder of finished programs. All else is built in the workspace's target folder, which makes what comes from
    /// elsewhere once for both trees.
    target: PathBuf,
    shared: PathBuf,
    how: &'static [&'static str],
    /// Options of cargo that tell its members from those of the workspace.
    apart: Vec<String>,
}

impl Site {
    pub(crate) fn optimised(workspace: &Workspace) -> Self {
        Self { how: OPTIMISED, ..Self::plain(workspace) }
    }

    pub(crate) fn counted(workspace: &Workspace) -> Self {
        Self { how: COUNTED, ..Self::plain(workspace) }
    }

    pub(crate) fn plain(workspace: &Workspace) -> Self {
        let Workspace { root, target, .. } = workspace;
        Self {
            root: root.clone(),
            target: target.clone(),
            shared: target.clone(),
            how: PLAIN,
            apart: Vec::new(),
        }
    }

    /// A copy with planted bugs. Its tests are short, and it is built in a quarter of the time of an optimised one.
    ///
    /// Cargo would take a member of it for the same one of the workspace, which stands at the same place of its tree, and
    /// run its tests as ours. A setting that changes nothing makes it another.
    pub(crate) fn with_bugs(root: PathBuf, target: PathBuf, workspace: &Workspace) -> Self {
        let other =
            |member: &Member| format!("--config=profile.dev.package.{}.codegen-units=255", member.name);
        let apart = workspace.members.iter().map(other).collect();
        Self { root, target, shared: workspace.target.clone(), how: PLAIN, apart }
    }
}

/// The wanted part of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Simulator,
    /// The simulator, the unit tests of all libraries and of the command, and the files or folders of `tests` with these names.
    Tests(&'static [&'static str]),
    /// The benches that count, the program that holds their counts against the ceilings, and the bench of growth.
    Counts,
    /// All targets that hold tests.
    Everything,
}

/// A program, and the folder that it is started in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    path: PathBuf,
    folder: PathBuf,
}

/// The built programs of a tree, by package and target.
#[derive(Debug, Default)]
pub(crate) struct Programs(BTreeMap<(String, String), Program>);

impl Programs {
    /// Builds them, and says what cargo says.
    pub(crate) fn build(site: &Site, part: Part, mut say: impl FnMut(&str)) -> Result<Self> {
        let mut programs = Self::default();
        let mut step = |words: &[&str], flag: &str, targets: &[&str]| {
            let mut command = cargo(&site.root);
            command.env("CARGO_TARGET_DIR", &site.target).env("CARGO_BUILD_BUILD_DIR", &site.shared);
            command
                .args(words)
                .args(site.how)
                .args(&site.apart)
                .args(["--message-format", "json-render-diagnostics"]);
            command.args(targets.iter().flat_map(|target| [flag, target]));
            let ending = process::stream(&mut command, None, |line| match serde_json::from_str(line) {
                Ok(message) => programs.take(&message),
                Err(_) => say(line),
            })?;
            let failure = ending.failure();
            ensure!(failure.is_none(), "the build failed: {}", failure.unwrap_or_default());
            Ok(())
        };
        match part {
            Part::Simulator => step(&["build"], "--bin", &["steadfast-sim"])?,
            Part::Counts => step(&["build", "--bin", "compare"], "--bench", &[COUNTS, &[GROWTH]].concat())?,
            Part::Tests(tests) => {
                step(&["build", "--bin", "steadfast-sim"], "--test", tests)?;
                // The command has no library.
                let command: &[&str] = if site.how == PLAIN { &["steadfast"] } else { &[] };
                step(&["test", "--no-run", "--lib"], "--bin", command)?;
            }
            Part::Everything => step(&["test", "--no-run"], "", &[])?,
        }
        Ok(programs)
    }

    /// Starts to describe a run of tests: those of a package's library or program, or those of one file or folder of
    /// `tests`.
    pub(crate) fn tests(&self, package: &str, target: &str) -> Result<Command> {
        let key = (package.to_owned(), target.to_owned());
        let program =
            self.0.get(&key).with_context(|| format!("no tests {target} of {package} were built"))?;
        let mut command = Command::new(&program.path);
        command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
        fix_draws(command.env_remove(BUG));
        Ok(command)
    }

    /// Starts to describe the program that holds counts against their ceilings.
    pub(crate) fn counts(&self) -> Result<Command> {
        let mut command = self.tests("benches", "program")?;
        for bench in COUNTS {
            let mut built = OsString::from(format!("{bench}="));
            built.push(self.tests("benches", bench)?.get_program());
            command.arg("--built").arg(built);
        }
        Ok(command)
    }

    /// Starts to describe the bench that compares how much costs grow, which judges itself.
    pub(crate) fn growth(&self) -> Result<Command> {
        let mut command = self.tests("benches", GROWTH)?;
        command.arg("--bench");
        Ok(command)
    }

    /// Takes in one of cargo's messages.
    fn take(&mut self, message: &Value) {
        let Some(path) = message["executable"].as_str() else { return };
        let Some(folder) = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent()) else {
            return;
        };
        let is_test = message["profile"]["test"] == true;
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let target = match (message["target"]["kind"][0].as_str().unwrap_or_default(), is_test) {
            ("lib", true) => "lib",
            ("test", true) | ("bench", _) => name,
            ("bin", true) => "bin",
            ("bin", false) => "program",
            _ => return,
        };
        let package = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let program = Program { path: path.into(), folder: folder.to_owned() };
        self.0.insert((package.to_owned(), target.to_owned()), program);
    }
}

#[cfg(all(test, unix))]
impl Programs {
    /// Shells instead of programs.
    pub(crate) fn shells() -> Self {
        let program = Program { path: "/bin/sh".into(), folder: "/".into() };
        let keys = [("steadfast-verify", "program"), ("steadfast-retry", "it")];
        Self(keys.map(|(package, target)| ((package.into(), target.into()), program.clone())).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tests_and_programs_are_told_apart() {
        let mut programs = Programs::default();
        for (kind, test, path) in [
            ("lib", true, "/t/lib"),
            ("test", true, "/t/it"),
            ("bin", true, "/t/bin"),
            ("bin", false, "/t/program"),
            ("bench", true, "/t/bench"),
        ] {
            programs.take(&json!({
                "manifest_path": "/c/one/Cargo.toml", "executable": path, "profile": {"test": test},
                "target": {"kind": [kind], "name": if kind == "bench" { kind } else { "it" }},
            }));
        }
        for target in ["lib", "it", "bin", "program", "bench"] {
            assert_eq!(programs.tests("one", target).unwrap().get_program(), format!("/t/{target}").as_str());
        }
        assert!(programs.tests("one", "gone").is_err());
    }
}
