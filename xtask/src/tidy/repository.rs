use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Source;

/// Folders that hold what tools made.
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
    /// Present for Rust files.
    source: Option<Source>,
}

impl Repository {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut repository = Self::default();
        repository.read_folder(root, "")?;
        repository.files.sort_by(|a, b| a.path.cmp(&b.path));
        repository.root_entries.sort();
        Ok(repository)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Every Rust file with its source taken apart.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| Some((file, file.source.as_ref()?)))
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
            // Links are not followed: what they point at is elsewhere, or read anyway.
            let kind = entry.file_type()?;
            if kind.is_dir() && MADE_BY_TOOLS.contains(&name.as_str()) {
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
                self.files.push(File::new(&path, text));
            }
        }
        Ok(())
    }
}

impl File {
    fn new(path: &str, text: String) -> Self {
        let source = path.ends_with(".rs").then(|| Source::read(&text));
        Self { path: path.to_owned(), text, source }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

#[cfg(test)]
impl Repository {
    /// A repository made of these paths and texts.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect();
        Self { files, root_entries: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    #[test]
    fn a_folder_is_read_without_what_tools_made() {
        let root = std::env::temp_dir().join(format!("xtask-repository-{}", process::id()));
        fs::create_dir_all(root.join("crates/one/src")).unwrap();
        fs::create_dir_all(root.join("target/debug")).unwrap();
        fs::write(root.join("crates/one/src/lib.rs"), "fn one() {}").unwrap();
        fs::write(root.join("target/debug/made.rs"), "").unwrap();
        fs::write(root.join("README.md"), "text").unwrap();
        fs::write(root.join("picture.png"), [0xff, 0xfe, 0x00]).unwrap();
        let repository = Repository::read(&root);
        fs::remove_dir_all(&root).unwrap();

        let repository = repository.unwrap();
        let paths: Vec<&str> = repository.files().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["README.md", "crates/one/src/lib.rs"]);
        assert_eq!(repository.root_entries(), ["README.md", "crates", "picture.png"]);
        assert_eq!(repository.rust().count(), 1);
    }
}
