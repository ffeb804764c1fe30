use super::Finding;

/// What a visitor sees first. Dotfiles belong to tools, and are not seen.
const VISIBLE: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "xtask",
];

/// Finds visible entries of the root that nobody agreed on.
pub(super) fn check(entries: &[String]) -> Vec<Finding> {
    entries
        .iter()
        .filter(|name| !name.starts_with('.') && !VISIBLE.contains(&name.as_str()))
        .map(|name| Finding::new(name, "is not one of the root's agreed entries"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    fn entries(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_stray_entry_is_found() {
        let found = check(&entries(&["crates", "notes.txt", ".github"]));
        assert_eq!(shown(found), ["notes.txt: is not one of the root's agreed entries"]);
    }

    #[test]
    fn agreed_entries_and_dotfiles_are_fine() {
        assert!(
            check(&entries(&[".ci", ".deny.toml", "Cargo.lock", "README.md", "fuzz", "xtask"])).is_empty()
        );
    }
}
