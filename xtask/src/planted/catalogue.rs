use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::detector::{Detector, TRAPS};
use super::table::Bug;

const SOURCE: &str = "crates/steadfast-spec/src/planted.rs";

/// The bugs that the tree holds: their names, and how many places they are planted in.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    bugs: BTreeMap<String, Planted>,
    /// The tests that each need a bug of their own.
    traps: Vec<String>,
}

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
        let traps = root.join(TRAPS);
        let traps =
            fs::read_to_string(&traps).with_context(|| format!("{} cannot be read", traps.display()))?;
        catalogue.traps = tests_of(&traps).map(str::to_owned).collect();
        ensure!(!catalogue.traps.is_empty(), "{TRAPS} holds no test");
        Ok(catalogue)
    }

    fn of(source: &str) -> Self {
        let rows = source.lines().filter_map(|line| {
            let (variant, name) = line.trim().strip_suffix("\",")?.split_once(" = \"")?;
            Some((name.to_owned(), Planted { variant: variant.to_owned(), sites: 0 }))
        });
        Self { bugs: rows.collect(), traps: Vec::new() }
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
                    let mut planted = self.bugs.values_mut();
                    if let Some(planted) = planted.find(|planted| planted.variant == variant) {
                        planted.sites += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Every bug has a place and detectors, every row of the table a bug, and every trap one that it has to find.
    pub(super) fn check(&self, table: &[Bug]) -> Result<()> {
        for (name, planted) in &self.bugs {
            ensure!(planted.sites > 0, "{name} is planted nowhere");
            let rows = table.iter().filter(|bug| bug.name == name).count();
            ensure!(rows > 0, "nothing looks for {name}");
            ensure!(rows == 1, "{name} has {rows} rows");
        }
        for bug in table {
            ensure!(self.bugs.contains_key(bug.name), "{} is no bug of {SOURCE}", bug.name);
            ensure!(!bug.detectors.is_empty(), "nothing looks for {}", bug.name);
        }
        let named: Vec<&str> = table
            .iter()
            .filter_map(|bug| match bug.detectors {
                // One that comes after others is not run if they find the bug.
                [Detector::Traps(names), ..] => Some(*names),
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        for trap in &self.traps {
            ensure!(named.contains(&&**trap), "no bug has to be found by {trap} of {TRAPS}");
        }
        for name in named {
            ensure!(self.traps.iter().any(|trap| trap == name), "{TRAPS} holds no test {name}");
        }
        Ok(())
    }
}

/// The names of the tests in a file.
fn tests_of(source: &str) -> impl Iterator<Item = &str> {
    let mut lines = source.lines();
    std::iter::from_fn(move || {
        lines.by_ref().find(|line| line.starts_with("#[tokio::test") || *line == "#[test]")?;
        lines.by_ref().find_map(|line| line.split_once("fn ")?.1.split_once('(').map(|(name, _)| name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_without_a_place_or_a_detector_is_named() {
        let mut catalogue = Catalogue::of("    /// What.\n    NoSettle = \"no-settle\",\n");
        assert!(catalogue.check(&[]).unwrap_err().to_string().contains("planted nowhere"));
        catalogue.bugs.values_mut().for_each(|planted| planted.sites = 1);
        assert!(catalogue.check(&[]).unwrap_err().to_string().contains("nothing looks for no-settle"));
        let unknown = [Bug { name: "other", detectors: &[] }, Bug { name: "no-settle", detectors: &[] }];
        assert!(catalogue.check(&unknown).is_err());
        let twice = [Bug { name: "no-settle", detectors: &[Detector::Simulation("orders")] }; 2];
        assert!(catalogue.check(&twice).unwrap_err().to_string().contains("2 rows"));
    }

    #[test]
    fn a_trap_without_a_bug_and_a_bug_without_its_trap_are_named() {
        let source = "#[test]\nfn a() {\n}\n\nfn not_a_test() {}\n\n#[tokio::test(x)]\nasync fn b() {}\n";
        assert_eq!(tests_of(source).collect::<Vec<_>>(), ["a", "b"]);
        let traps = |names: &[&str]| {
            let bugs = [("x".to_owned(), Planted { variant: "X".to_owned(), sites: 1 })].into();
            Catalogue { bugs, traps: names.iter().map(ToString::to_string).collect() }
        };
        let table = [Bug { name: "x", detectors: &[Detector::Traps(&["a"])] }];
        traps(&["a"]).check(&table).unwrap();
        assert!(traps(&["a", "b"]).check(&table).unwrap_err().to_string().contains("found by b"));
        assert!(traps(&[]).check(&table).unwrap_err().to_string().contains("holds no test a"));
    }
}
