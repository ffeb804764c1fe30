use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::cargo::cargo;

/// The workspace as `cargo metadata --no-deps` describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    #[serde(rename = "packages")]
    pub(crate) members: Vec<Member>,
}

/// One package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency of a member on anything.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or none for those that users build.
    pub(crate) kind: Option<String>,
    /// Present if it is a member itself.
    pub(crate) path: Option<PathBuf>,
}

impl Workspace {
    /// Asks cargo about the workspace at `root`.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let output = cargo(root)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cargo did not start")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cargo metadata failed\n{}", complaint.trim_end());
        serde_json::from_slice(&output.stdout).context("cargo metadata has changed")
    }
}

#[cfg(test)]
impl Member {
    /// A member of the workspace at `/repo`.
    pub(crate) fn of(name: &str, folder: &str, dependencies: Vec<Dependency>) -> Self {
        Self {
            name: name.to_owned(),
            manifest_path: Path::new("/repo").join(folder).join("Cargo.toml"),
            dependencies,
        }
    }
}
