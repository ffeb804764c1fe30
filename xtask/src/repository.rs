use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Every text file of the repository, read once.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    files: Vec<File>,
}

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with `/` on every system.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Repository {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut repository = Self::default();
        for path in paths(root)? {
            // Git also lists files that were removed since the last commit. The ends of links are elsewhere, or read anyway.
            let place = root.join(&path);
            if fs::symlink_metadata(&place).is_ok_and(|is| is.is_file())
                && let Ok(text) = String::from_utf8(fs::read(place)?)
            {
                repository.files.push(File { path, text });
            }
        }
        Ok(repository)
    }

    /// A repository made of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect() }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

/// Every file that git tracks or would add. Ignored files are not part of the workspace.
pub(crate) fn paths(root: &Path) -> Result<BTreeSet<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().context("git did not start")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git ls-files failed: {}", complaint.trim());
    let paths = String::from_utf8(output.stdout).context("the name of a file is not UTF-8")?;
    Ok(paths.split_terminator('\0').map(str::to_owned).collect())
}

impl File {
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// The words of a line: letters, digits and `_`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
}

/// The name of the function that a line of code begins.
pub(crate) fn function_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let (before, after) = code.split_once("fn ")?;
    let is_code =
        before.split_whitespace().all(|word| matches!(word, "pub" | "pub(crate)" | "async" | "const"));
    let name = words(after).next().filter(|name| !name.is_empty());
    name.filter(|_| is_code && !code.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_come_from_code_only() {
        assert_eq!(function_name("    pub(crate) async fn one<T>() {"), Some("one"));
        assert_eq!(function_name("fn two_2(a: u8) {"), Some("two_2"));
        for line in ["// fn three() {", "let a = \"fn four()\";", "type A = fn (u8);"] {
            assert_eq!(function_name(line), None, "{line}");
        }
    }
}
