use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::detector::{Detector, TRAPS};
use crate::repository::{Repository, function_name};

/// The folder with a file for each bug, which has the bug's name.
pub(super) const FOLDER: &str = "crates/steadfast-verify/planted";
/// The replacements of the switch, which tells in the copy which bug is on.
const SWITCH: &str = include_str!("switch.toml");

/// A mistake that can be planted.
#[derive(Debug)]
pub(super) struct Bug {
    pub(super) name: String,
    /// The detectors, one of which must find it. They run in this order until one does.
    pub(super) detectors: Vec<Detector>,
    replacements: Vec<Replacement>,
}

/// The file of a bug.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// The mistake in a sentence.
    what: String,
    /// A list of [`Detector`]s.
    found_by: Vec<String>,
    /// The `new` text asks `planted::is_on` whether this bug is on.
    replace: Vec<Replacement>,
}

/// A text of the sources, and the text that replaces it in the copy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    file: String,
    old: String,
    new: String,
}

/// The file of the switch.
#[derive(Deserialize)]
struct Switch {
    replace: Vec<Replacement>,
}

/// The files of the copy that differ from those of the repository, by path.
pub(super) type Changed = BTreeMap<String, String>;

impl Bug {
    /// Returns every bug of the repository, sorted by name.
    pub(super) fn all(files: &Repository) -> Result<Vec<Self>> {
        let bugs = files.files().filter_map(|file| {
            let name = file.path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".toml")?;
            Some(Self::parse(name, &file.text).with_context(|| format!("{} is wrong", file.path)))
        });
        bugs.collect()
    }

    /// True if one of these files is its own, or one that it is planted in.
    pub(super) fn is_in(&self, changed: &BTreeSet<String>) -> bool {
        let places = self.replacements.iter().map(|replacement| &replacement.file);
        places.chain([&format!("{FOLDER}/{}.toml", self.name)]).any(|path| changed.contains(path))
    }

    pub(super) fn parse(name: &str, text: &str) -> Result<Self> {
        let File { what, found_by, replace: replacements } = toml::from_str(text)?;
        ensure!(!what.is_empty() && !found_by.is_empty(), "`what` or `found-by` is empty");
        let detectors = found_by.iter().map(|line| Detector::parse(line)).collect::<Result<_>>()?;
        let switch = format!("planted::is_on(\"{name}\")");
        let is_switched = replacements.iter().any(|replacement| replacement.new.contains(&switch));
        ensure!(is_switched, "it is planted nowhere: no `new` asks for {switch}");
        Ok(Self { name: name.to_owned(), detectors, replacements })
    }
}

/// Plants all bugs: returns the changed files, or the reasons why that is impossible.
///
/// Each `old` text must occur exactly once in its file, and no two may overlap. So the order of the bugs does not matter.
pub(super) fn plant(bugs: &[Bug], files: &Repository) -> Result<Changed, Vec<String>> {
    let switch: Switch = toml::from_str(SWITCH).map_err(|error| vec![format!("the switch: {error}")])?;
    let named =
        bugs.iter().flat_map(|bug| bug.replacements.iter().map(|replacement| (&*bug.name, replacement)));
    let named = named.chain(switch.replace.iter().map(|replacement| ("the switch", replacement)));

    let mut findings = Vec::new();
    let mut places: BTreeMap<&str, Vec<(usize, &str, &Replacement)>> = BTreeMap::new();
    for (name, replacement) in named {
        let Replacement { file, old, .. } = replacement;
        let text = files.file(file).map_or("", |file| &file.text);
        match text.match_indices(old.as_str()).collect::<Vec<_>>()[..] {
            [(at, _)] => places.entry(file).or_default().push((at, name, replacement)),
            ref found => {
                let count = found.len();
                findings.push(format!(
                    "{name}: its text must occur once in {file}, and occurs {count} times: {old}"
                ));
            }
        }
    }
    let mut changed = Changed::new();
    for (file, mut places) in places {
        places.sort_by_key(|(at, ..)| *at);
        let text = files.file(file).map_or("", |file| &file.text);
        let (mut planted, mut end, mut last) = (String::new(), 0, "");
        for (at, name, Replacement { old, new, .. }) in places {
            if at < end {
                findings.push(format!("{name}: it overlaps {last} in {file}: {old}"));
                continue;
            }
            planted.push_str(&text[end..at]);
            planted.push_str(new);
            (end, last) = (at + old.len(), name);
        }
        planted.push_str(&text[end..]);
        changed.insert(file.to_owned(), planted);
    }
    if findings.is_empty() { Ok(changed) } else { Err(findings) }
}

/// Checks that each bug can be planted and has detectors, and that each trap is the first detector of a bug.
pub(crate) fn check(files: &Repository) -> Vec<String> {
    let bugs = match Bug::all(files) {
        Ok(bugs) => bugs,
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut findings = plant(&bugs, files).err().unwrap_or_default();
    let traps: Vec<&str> = files.file(TRAPS).map(|file| tests_of(&file.text).collect()).unwrap_or_default();
    if traps.is_empty() {
        findings.push(format!("{TRAPS}: it holds no test"));
    }
    // A later detector does not run if an earlier one finds the bug.
    let firsts = bugs.iter().filter_map(|bug| bug.detectors.first());
    let named: Vec<&str> =
        firsts.flat_map(Detector::exact).filter_map(|name| name.strip_prefix("traps::")).collect();
    for trap in traps.iter().filter(|trap| !named.contains(trap)) {
        findings.push(format!("{TRAPS}: no bug has to be found by {trap}"));
    }
    for name in named.iter().filter(|name| !traps.contains(name)) {
        findings.push(format!("{TRAPS}: it holds no test {name}"));
    }
    findings
}

/// Returns the names of the tests in a file.
fn tests_of(source: &str) -> impl Iterator<Item = &str> {
    let attributes =
        source.split("\n#[").filter(|item| item.starts_with("test]") || item.starts_with("tokio::test"));
    attributes.filter_map(|item| item.lines().find_map(function_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND_BY: &str = "what = 'x'\nfound-by = ['tests p it --exact traps::a']\n";

    fn bug(name: &str, old: &str, new: &str) -> Bug {
        let replace =
            format!("[[replace]]\nfile = 'a.rs'\nold = '{old}'\nnew = '{new} planted::is_on(\"{name}\")'");
        Bug::parse(name, &format!("{FOUND_BY}{replace}")).unwrap()
    }

    /// Plants the bugs in a file with this text.
    fn planted(bugs: &[Bug], text: &str) -> Result<String, String> {
        let switch: Switch = toml::from_str(SWITCH).unwrap();
        // The switch must find its own texts, but its result is not checked here.
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        for Replacement { file, old, .. } in &switch.replace {
            files.entry(file).or_default().push_str(old);
        }
        files.insert("a.rs", text.to_owned());
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        plant(bugs, &Repository::of(&files))
            .map(|changed| changed["a.rs"].clone())
            .map_err(|all| all.concat())
    }

    #[test]
    fn all_bugs_are_planted_whatever_their_order() {
        let bugs = [bug("p", "one", "1"), bug("q", "two", "2")];
        let text = "2 planted::is_on(\"q\") and 1 planted::is_on(\"p\")";
        assert_eq!(planted(&bugs, "two and one").unwrap(), text);
    }

    #[test]
    fn bugs_that_cannot_be_planted_are_named() {
        for (text, count) in [("nothing", 0), ("one one", 2)] {
            let error = planted(&[bug("p", "one", "1"), bug("q", "nothing", "2")], text).unwrap_err();
            assert!(error.contains("p: its text") && error.contains(&format!("{count} times")), "{error}");
        }
        let error = planted(&[bug("p", "one t", "1"), bug("q", "two", "2")], "one two").unwrap_err();
        assert!(error.contains("q: it overlaps p"), "{error}");
        let idle = format!("{FOUND_BY}[[replace]]\nfile = 'a.rs'\nold = 'one'\nnew = '1'");
        assert!(Bug::parse("p", &idle).unwrap_err().to_string().contains("planted nowhere"));
    }

    #[test]
    fn a_trap_without_a_bug_and_a_bug_without_its_trap_are_named() {
        let source = "\n#[test]\nfn b() {\n}\n\nfn not_a_test() {}\n\n#[tokio::test(x)]\nasync fn c() {}\n";
        let bug = format!("{FOUND_BY}[[replace]]\nfile = 'f'\nold = 'o'\nnew = 'planted::is_on(\"p\")'");
        let files = Repository::of(&[(TRAPS, source), (&format!("{FOLDER}/p.toml"), &bug)]);
        let found = check(&files).concat();
        for what in ["found by b", "found by c", "holds no test a", "0 times"] {
            assert!(found.contains(what), "{what}: {found}");
        }
    }
}
