use toml::{Table, Value};

use super::{Finding, Repository};

/// Crates that must not come in, not even through others: both are unmaintained.
const BANNED: &[&str] = &["backoff", "instant"];

/// Finds banned crates in the lock file.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let Some(file) = files.file("Cargo.lock") else {
        return vec![Finding::new("Cargo.lock", "is missing")];
    };
    let table = match file.text.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return vec![Finding::new("Cargo.lock", error.message())],
    };
    let packages = table.get("package").and_then(Value::as_array).into_iter().flatten();
    packages
        .filter_map(|package| package.get("name")?.as_str())
        .filter(|name| BANNED.contains(name))
        .map(|name| Finding::new("Cargo.lock", format_args!("`{name}` is banned")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    fn found(names: &[&str]) -> Vec<String> {
        let lock: String = names.iter().map(|name| format!("[[package]]\nname = \"{name}\"\n")).collect();
        shown(check(&Repository::of(&[("Cargo.lock", &lock)])))
    }

    #[test]
    fn a_banned_crate_is_found() {
        let names = ["backoff", "bytes", "instant"];
        assert_eq!(found(&names), ["Cargo.lock: `backoff` is banned", "Cargo.lock: `instant` is banned"]);
    }

    #[test]
    fn other_crates_are_fine() {
        assert_eq!(found(&["backon", "bytes"]), [""; 0]);
    }

    #[test]
    fn a_lock_file_must_be_there() {
        assert_eq!(shown(check(&Repository::of(&[]))), ["Cargo.lock: is missing"]);
    }
}
