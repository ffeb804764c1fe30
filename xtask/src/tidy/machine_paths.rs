use super::{Finding, Repository};

/// What would tie the repository to one machine or one place of download.
///
/// In pieces, so that this file does not hold what it looks for.
const PATTERNS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/tmp/bash", "_jobs"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.npmjs", ".org"),
];

/// Finds paths of a machine and hosts of package registries in any text.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.files() {
        for (number, line) in (1..).zip(file.text.lines()) {
            for pattern in PATTERNS.iter().filter(|pattern| line.contains(**pattern)) {
                findings.push(Finding::at(&file.path, number, format_args!("`{pattern}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_found_wherever_it_stands() {
        for pattern in PATTERNS {
            let files = Repository::of(&[
                ("src/a.rs", &format!("fn a() {{}}\nconst A: &str = \"{pattern}\";")),
                ("README.md", &format!("see {pattern}main")),
            ]);
            let places: Vec<String> = check(&files).iter().map(Finding::to_string).collect();
            assert_eq!(places, [format!("src/a.rs:2: `{pattern}`"), format!("README.md:1: `{pattern}`")]);
        }
    }

    #[test]
    fn ordinary_texts_are_fine() {
        let files = Repository::of(&[("README.md", "cargo add steadfast; ls network/ framework/")]);
        assert!(check(&files).is_empty());
    }
}
