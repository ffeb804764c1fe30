use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::root;

/// The workspace as cargo sees it.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) members: Vec<Member>,
}

/// One package of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// The folder of the manifest, relative to the root.
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) examples: Vec<Example>,
    /// The programs that this package's tests start: `system-tools` under `[package.metadata.xtask]`.
    pub(crate) system_tools: Vec<String>,
}

/// A dependency of a member on anything.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
}

/// What a dependency is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Part of what users build.
    Shipped,
    /// A dev-dependency.
    Tests,
}

/// Where a dependency comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Workspace,
    Elsewhere,
}

/// An example target.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) source: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace at `root`.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let output = root::cargo(root)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cargo did not start")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cargo metadata failed\n{}", complaint.trim_end());
        Self::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Reads the JSON of `cargo metadata --no-deps`.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let json: Value = serde_json::from_str(json).context("cargo metadata is not JSON")?;
        let root = PathBuf::from(text(&json, "workspace_root")?);
        let members =
            array(&json, "packages").map(|package| member(&root, package)).collect::<Result<Vec<_>>>()?;
        Ok(Self { target: PathBuf::from(text(&json, "target_directory")?), root, members })
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

fn member(root: &Path, package: &Value) -> Result<Member> {
    let manifest = Path::new(text(package, "manifest_path")?);
    let folder = manifest.parent().unwrap_or(root);
    let examples = array(package, "targets")
        .filter(|target| array(target, "kind").any(|kind| kind == "example"))
        .map(|target| {
            Ok(Example { name: text(target, "name")?.to_owned(), source: text(target, "src_path")?.into() })
        })
        .collect::<Result<Vec<_>>>()?;
    let tools = package.pointer("/metadata/xtask").map(|xtask| array(xtask, "system-tools"));
    Ok(Member {
        name: text(package, "name")?.to_owned(),
        folder: folder.strip_prefix(root).unwrap_or(folder).to_path_buf(),
        dependencies: array(package, "dependencies").map(dependency).collect::<Result<Vec<_>>>()?,
        examples,
        system_tools: tools.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

fn dependency(json: &Value) -> Result<Dependency> {
    let kind = if json["kind"] == "dev" { Kind::Tests } else { Kind::Shipped };
    let origin = if json["path"].is_string() { Origin::Workspace } else { Origin::Elsewhere };
    Ok(Dependency { name: text(json, "name")?.to_owned(), kind, origin })
}

fn text<'a>(json: &'a Value, key: &str) -> Result<&'a str> {
    json[key].as_str().with_context(|| format!("cargo metadata without `{key}`"))
}

fn array<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    json[key].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{
        "workspace_root": "/repo", "target_directory": "/repo/target",
        "packages": [{
            "name": "examples", "manifest_path": "/repo/examples/Cargo.toml",
            "metadata": {"xtask": {"system-tools": ["strace"]}},
            "dependencies": [
                {"name": "steadfast", "kind": null, "path": "/repo/crates/steadfast"},
                {"name": "tokio", "kind": "dev"}
            ],
            "targets": [
                {"name": "quickstart", "kind": ["example"], "src_path": "/repo/examples/quickstart.rs"},
                {"name": "examples", "kind": ["lib"], "src_path": "/repo/examples/lib.rs"}
            ]
        }]
    }"#;

    #[test]
    fn members_examples_tools_and_edges_are_read() {
        let workspace = Workspace::parse(JSON).unwrap();
        let member = workspace.member("examples").unwrap();
        assert_eq!(member.folder, Path::new("examples"));
        assert_eq!(member.system_tools, ["strace"]);
        assert_eq!(member.examples.len(), 1);
        assert_eq!(member.examples[0].name, "quickstart");
        let edges: Vec<_> = member.dependencies.iter().map(|edge| (edge.kind, edge.origin)).collect();
        assert_eq!(edges, [(Kind::Shipped, Origin::Workspace), (Kind::Tests, Origin::Elsewhere)]);
    }

    #[test]
    fn a_missing_key_is_named() {
        assert_eq!(
            Workspace::parse("{}").unwrap_err().to_string(),
            "cargo metadata without `workspace_root`"
        );
    }
}
