use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Products of tools. In a second work tree `.git` is a file.
const MADE_BY_TOOLS: &[&str] = &[".git", "target"];

/// Every text file of the repository, read once.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    files: Vec<File>,
    root_entries: Vec<String>,
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
        repository.read_folder(root, "")?;
        repository.files.sort_by(|a, b| a.path.cmp(&b.path));
        repository.root_entries.sort();
        Ok(repository)
    }

    /// A repository made of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File { path: (*path).to_owned(), text: (*text).to_owned() };
        Self { files: files.iter().map(file).collect(), root_entries: Vec::new() }
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

    pub(crate) fn root_entries(&self) -> &[String] {
        &self.root_entries
    }

    fn read_folder(&mut self, folder: &Path, path: &str) -> Result<()> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("{} is not readable", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links are not followed: their ends are elsewhere, or read anyway.
            let kind = entry.file_type()?;
            if MADE_BY_TOOLS.contains(&name.as_str()) {
                continue;
            }
            if path.is_empty() {
                self.root_entries.push(name.clone());
            }
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            if kind.is_dir() {
                self.read_folder(&entry.path(), &path)?;
            } else if kind.is_file()
                && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
            {
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }
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
