use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::tree::Tree;
use crate::console;
use crate::process::{self, Pipe};
use crate::root::cargo;

/// The simulator, and the crates whose tests look for bugs. Always all of them together: fewer would have other features
/// of what they depend on, and build that once more.
const PACKAGES: [&str; 8] = [
    "steadfast",
    "steadfast-auth",
    "steadfast-cli",
    "steadfast-dedup",
    "steadfast-limit",
    "steadfast-retry",
    "steadfast-sandbox",
    "steadfast-verify",
];
/// What is built of them: nothing that no detector runs, as far as cargo can tell it apart.
const STEPS: [&[&str]; 2] = [
    &[
        "build",
        "--bin",
        "steadfast-sim",
        "--test",
        "it",
        "--test",
        "journal",
        "--test",
        "gateway",
        "--test",
        "outage",
    ],
    &["test", "--no-run", "--lib"],
];

pub(crate) const PROFILE: &str = "planted";

/// A program, and the folder that it is started in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    path: PathBuf,
    folder: PathBuf,
}

impl Binary {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// The programs of the copy with all planted bugs, by package and target.
#[derive(Debug, Default)]
pub(super) struct Binaries(BTreeMap<(String, String), Binary>);

impl Binaries {
    /// Builds them.
    pub(super) fn build(tree: &Tree) -> Result<Self> {
        let mut binaries = Self::default();
        for step in STEPS {
            let mut command = cargo(&tree.root);
            command.args(step).args(["--profile", PROFILE, "--message-format", "json-render-diagnostics"]);
            tree.build_by(&mut command);
            for package in PACKAGES {
                command.args(["--package", package]);
            }
            let ending = process::stream(&mut command, None, |pipe, line| match pipe {
                Pipe::Out => binaries.take(line),
                Pipe::Err => console::complain(line),
            })?;
            let failure = ending.failure();
            ensure!(failure.is_none(), "the build failed: {}", failure.unwrap_or_default());
        }
        Ok(binaries)
    }

    /// The tests of a package: those of its library, or those of one file or folder of `tests`.
    pub(super) fn tests(&self, package: &str, target: &str) -> Result<&Binary> {
        let known = self.0.get(&(package.to_owned(), target.to_owned()));
        known.with_context(|| format!("no tests {target} of {package} were built"))
    }

    pub(super) fn simulator(&self) -> Result<&Binary> {
        self.tests("steadfast-verify", "bin")
    }

    /// Takes in one of cargo's messages.
    fn take(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let Some(path) = message["executable"].as_str() else { return };
        let Some(folder) = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent()) else {
            return;
        };
        let is_test = message["profile"]["test"] == true;
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let target = match (message["target"]["kind"][0].as_str().unwrap_or_default(), is_test) {
            ("lib", true) => "lib",
            ("test", true) => name,
            ("bin", false) => "bin",
            _ => return,
        };
        let package = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let binary = Binary { path: path.into(), folder: folder.to_owned() };
        self.0.insert((package.to_owned(), target.to_owned()), binary);
    }

    #[cfg(all(test, unix))]
    pub(super) fn shell() -> Self {
        let binary = Binary { path: "/bin/sh".into(), folder: "/".into() };
        let keys = [("steadfast-verify", "bin"), ("steadfast-retry", "it")];
        Self(keys.map(|(package, target)| ((package.into(), target.into()), binary.clone())).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_programs_are_told_apart() {
        let mut binaries = Binaries::default();
        for (kind, name, test, path) in [
            ("lib", "steadfast_retry", true, "/t/lib"),
            ("test", "it", true, "/t/it"),
            ("bin", "steadfast-sim", true, "/t/no"),
            ("bin", "steadfast-sim", false, "/t/sim"),
        ] {
            let package = if kind == "bin" { "steadfast-verify" } else { "steadfast-retry" };
            binaries.take(&format!(
                r#"{{"manifest_path":"/c/{package}/Cargo.toml","executable":"{path}","profile":{{"test":{test}}},
                "target":{{"kind":["{kind}"],"name":"{name}"}}}}"#
            ));
        }
        binaries.take("not a message");
        let path = |binary: Result<&Binary>| binary.unwrap().path.clone();
        assert_eq!(path(binaries.tests("steadfast-retry", "lib")), Path::new("/t/lib"));
        assert_eq!(path(binaries.tests("steadfast-retry", "it")), Path::new("/t/it"));
        assert_eq!(path(binaries.simulator()), Path::new("/t/sim"));
        assert!(binaries.tests("steadfast-retry", "gone").is_err());
    }
}
