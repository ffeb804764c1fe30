use toml::{Table, Value};

use super::{Finding, Repository};

/// The keys of `[package]` that stand in the root alone.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];
const DEPENDENCIES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Finds manifests that do not inherit what the root decides for all.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.files().filter(|file| file.name() == "Cargo.toml" && is_member(&file.path)) {
        match file.text.parse::<Table>() {
            Ok(manifest) => {
                let broken = package(&manifest).into_iter().chain(dependencies(&manifest));
                findings.extend(broken.map(|what| Finding::new(&file.path, what)));
            }
            Err(error) => findings.push(Finding::new(&file.path, error.message())),
        }
    }
    findings
}

/// The root is what the others inherit from; `fuzz` is a workspace of its own, for the fuzzer's sake.
fn is_member(path: &str) -> bool {
    path != "Cargo.toml" && !path.starts_with("fuzz/")
}

fn package(manifest: &Table) -> Vec<String> {
    let package = manifest.get("package").and_then(Value::as_table);
    let inherits = |key: &&&str| !package.and_then(|package| package.get(**key)).is_some_and(is_inherited);
    let mut broken: Vec<String> =
        INHERITED.iter().filter(inherits).map(|key| format!("`{key}` is not inherited")).collect();
    if !manifest.get("lints").is_some_and(is_inherited) {
        broken.push("`lints` are not inherited".to_owned());
    }
    broken
}

fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values().filter_map(Value::as_table));
    let tables = std::iter::once(manifest).chain(targets);
    let dependencies = tables
        .flat_map(|table| DEPENDENCIES.iter().filter_map(|key| table.get(*key)?.as_table()))
        .flat_map(Table::iter);
    dependencies
        .filter(|(_, dependency)| !is_inherited(dependency) && !is_local(dependency))
        .map(|(name, _)| format!("the version of `{name}` is not inherited"))
        .collect()
}

fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// A path without a version: nothing to keep in one place.
fn is_local(dependency: &Value) -> bool {
    dependency.get("path").is_some() && dependency.get("version").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    const GOOD: &str = r#"
        [package]
        name = "one"
        version.workspace = true
        edition.workspace = true
        rust-version.workspace = true
        license.workspace = true
        [lints]
        workspace = true
        [dependencies]
        tower = { workspace = true, features = ["util"] }
    "#;

    fn found(manifest: &str) -> Vec<String> {
        shown(check(&Repository::of(&[("crates/one/Cargo.toml", manifest)])))
    }

    #[test]
    fn a_manifest_that_inherits_everything_is_fine() {
        assert_eq!(found(GOOD), [""; 0]);
    }

    #[test]
    fn every_key_that_is_not_inherited_is_found() {
        for key in INHERITED {
            // The blank before it keeps "version" apart from "rust-version".
            let inherited = format!(" {key}.workspace = true");
            let what = format!("crates/one/Cargo.toml: `{key}` is not inherited");
            for instead in ["", &format!(" {key} = \"1\""), &format!(" {key}.workspace = false")] {
                assert_eq!(found(&GOOD.replace(&inherited, instead)), [what.as_str()], "{key}");
            }
        }
        let without_lints = GOOD.replace("[lints]", "[other]");
        assert_eq!(found(&without_lints), ["crates/one/Cargo.toml: `lints` are not inherited"]);
    }

    #[test]
    fn a_dependency_with_a_version_of_its_own_is_found_in_every_table() {
        for table in ["dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            let found = found(&format!("{GOOD}\n[{table}]\nbytes = \"1\"\n"));
            assert_eq!(found, ["crates/one/Cargo.toml: the version of `bytes` is not inherited"], "{table}");
        }
    }

    #[test]
    fn a_path_without_a_version_is_fine() {
        assert_eq!(found(&format!("{GOOD}\n[dev-dependencies]\npeers = {{ path = \"peers\" }}\n")), [""; 0]);
        assert_eq!(
            found(&format!("{GOOD}\n[dev-dependencies]\na = {{ path = \"a\", version = \"1\" }}\n")).len(),
            1
        );
    }

    #[test]
    fn the_root_and_the_fuzz_workspace_have_nothing_to_inherit() {
        assert!(check(&Repository::of(&[("Cargo.toml", ""), ("fuzz/Cargo.toml", "")])).is_empty());
    }
}
