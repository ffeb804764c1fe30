use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::table::Bug;

const SOURCE: &str = "crates/steadfast-spec/src/planted.rs";

/// The bugs that the tree holds: their names, and how many places they are planted in.
#[derive(Debug, Default)]
pub(super) struct Catalogue(BTreeMap<String, Planted>);

#[derive(Debug)]
struct Planted {
    variant: String,
    sites: usize,
}

impl Catalogue {
    /// Reads the table of names and looks for the places.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let path = root.join(SOURCE);
        let source =
            fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let mut catalogue = Self::of(&source);
        let folders = fs::read_dir(root.join("crates")).context("the crates cannot be listed")?;
        for folder in folders {
            let folder = folder?.path();
            catalogue.look_through(&folder.join("src"))?;
            // A few stand where a transport of a test does what a layer could do.
            catalogue.look_through(&folder.join("tests"))?;
        }
        Ok(catalogue)
    }

    fn of(source: &str) -> Self {
        let rows = source.lines().filter_map(|line| {
            let (variant, name) = line.trim().strip_suffix("\",")?.split_once(" = \"")?;
            Some((name.to_owned(), Planted { variant: variant.to_owned(), sites: 0 }))
        });
        Self(rows.collect())
    }

    fn look_through(&mut self, folder: &Path) -> Result<()> {
        if !folder.is_dir() {
            return Ok(());
        }
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.look_through(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with(SOURCE) {
                let text = fs::read_to_string(&path)?;
                let variants = text.split("Planted::").skip(1).filter_map(|site| site.split('.').next());
                for variant in variants {
                    let mut planted = self.0.values_mut();
                    if let Some(planted) = planted.find(|planted| planted.variant == variant) {
                        planted.sites += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Every bug has a place and detectors, and every row of the table a bug.
    pub(super) fn check(&self, table: &[Bug]) -> Result<()> {
        for (name, planted) in &self.0 {
            ensure!(planted.sites > 0, "{name} is planted nowhere");
            ensure!(table.iter().any(|bug| bug.name == name), "nothing looks for {name}");
        }
        for bug in table {
            ensure!(self.0.contains_key(bug.name), "{} is no bug of {SOURCE}", bug.name);
            ensure!(!bug.detectors.is_empty(), "nothing looks for {}", bug.name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_without_a_place_or_a_detector_is_named() {
        let mut catalogue = Catalogue::of("    /// What.\n    NoSettle = \"no-settle\",\n");
        assert!(catalogue.check(&[]).unwrap_err().to_string().contains("planted nowhere"));
        catalogue.0.values_mut().for_each(|planted| planted.sites = 1);
        assert!(catalogue.check(&[]).unwrap_err().to_string().contains("nothing looks for no-settle"));
        let unknown = [Bug { name: "other", detectors: &[] }, Bug { name: "no-settle", detectors: &[] }];
        assert!(catalogue.check(&unknown).is_err());
    }
}
