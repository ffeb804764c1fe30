use super::{Finding, Repository};

/// Names that say nothing about what is inside, and so gather everything.
const DRAWERS: &[&str] =
    &["utils.rs", "util.rs", "types.rs", "common.rs", "helpers.rs", "helper.rs", "misc.rs"];

/// Finds Rust files that are not named after one subject.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in files.rust() {
        if file.name() == "mod.rs" {
            findings.push(Finding::new(&file.path, "name it after the module, beside the module's folder"));
        } else if DRAWERS.contains(&file.name()) {
            findings.push(Finding::new(&file.path, "name it after what is inside"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawers_and_mod_files_are_found() {
        for path in ["a/src/mod.rs", "a/src/utils.rs", "a/src/types.rs", "a/tests/common.rs", "helpers.rs"] {
            assert_eq!(check(&Repository::of(&[(path, "")])).len(), 1, "{path}");
        }
    }

    #[test]
    fn subjects_are_fine() {
        let files =
            Repository::of(&[("a/src/order_types.rs", ""), ("a/src/model.rs", ""), ("a/types.md", "")]);
        assert!(check(&files).is_empty());
    }
}
