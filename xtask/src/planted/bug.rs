use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use toml::{Table, Value};

use super::detector::{Detector, TRAPS};
use crate::tidy::{Finding, Repository};

/// The folder with a file for each bug, which has the bug's name.
pub(super) const FOLDER: &str = "crates/steadfast-verify/planted";
/// The replacements of the switch, which tells in the copy which bug is on.
const SWITCH: &str = include_str!("switch.toml");

/// A mistake that can be planted.
///
/// Its file has three keys: `what`, the mistake in a sentence; `found-by`, a list of [`Detector`]s; and one or more `replace`,
/// each with a `file`, an `old` text in it, and a `new` text. The `new` text asks `planted::is_on` whether this bug is on.
#[derive(Debug)]
pub(super) struct Bug {
    pub(super) name: String,
    /// The detectors, one of which must find it. They run in this order until one does.
    pub(super) detectors: Vec<Detector>,
    replacements: Vec<Replacement>,
}

/// A text of the sources, and the text that replaces it in the copy.
#[derive(Debug)]
struct Replacement {
    file: String,
    old: String,
    new: String,
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

    fn parse(name: &str, text: &str) -> Result<Self> {
        let table: Table = text.parse()?;
        let unknown = table.keys().find(|key| !["what", "found-by", "replace"].contains(&key.as_str()));
        ensure!(unknown.is_none(), "`{}` is not one of its keys", unknown.map_or("", String::as_str));
        text_of(&table, "what")?;
        let lines = table.get("found-by").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        ensure!(!lines.is_empty(), "nothing looks for it: `found-by` is missing");
        let detectors = lines.iter().map(|line| Detector::parse(line.as_str().unwrap_or_default()));
        let (detectors, replacements) = (detectors.collect::<Result<_>>()?, replacements(&table)?);
        let switch = format!("planted::is_on(\"{name}\")");
        let is_switched = replacements.iter().any(|replacement| replacement.new.contains(&switch));
        ensure!(is_switched, "it is planted nowhere: no `new` asks for {switch}");
        Ok(Self { name: name.to_owned(), detectors, replacements })
    }
}

fn replacements(table: &Table) -> Result<Vec<Replacement>> {
    let all = table.get("replace").and_then(Value::as_array).context("`replace` is missing")?;
    let read = |one: &Value| {
        let table = one.as_table().context("`replace` is no table")?;
        let [file, old, new] = ["file", "old", "new"].map(|key| text_of(table, key));
        Ok(Replacement { file: file?, old: old?, new: new? })
    };
    all.iter().map(read).collect()
}

fn text_of(table: &Table, key: &str) -> Result<String> {
    let text = table.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    Ok(text.with_context(|| format!("`{key}` is missing"))?.to_owned())
}

/// Plants all bugs: returns the changed files, or the reasons why that is impossible.
///
/// Each `old` text must occur exactly once in its file, and no two may overlap. So the order of the bugs does not matter.
pub(super) fn plant(bugs: &[Bug], files: &Repository) -> Result<Changed, Vec<Finding>> {
    let switch = SWITCH.parse().map_err(anyhow::Error::from).and_then(|table| replacements(&table));
    let switch = switch.map_err(|error| vec![Finding::new("the switch", format_args!("{error:#}"))])?;
    let named =
        bugs.iter().flat_map(|bug| bug.replacements.iter().map(|replacement| (&*bug.name, replacement)));
    let named = named.chain(switch.iter().map(|replacement| ("the switch", replacement)));

    let mut findings = Vec::new();
    let mut places: BTreeMap<&str, Vec<(usize, &str, &Replacement)>> = BTreeMap::new();
    for (name, replacement) in named {
        let Replacement { file, old, .. } = replacement;
        let text = files.file(file).map_or("", |file| &file.text);
        match text.match_indices(old.as_str()).collect::<Vec<_>>()[..] {
            [(at, _)] => places.entry(file).or_default().push((at, name, replacement)),
            ref found => {
                let count = found.len();
                let what =
                    format_args!("its text must occur once in {file}, and occurs {count} times: {old}");
                findings.push(Finding::new(name, what));
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
                findings.push(Finding::new(name, format_args!("it overlaps {last} in {file}: {old}")));
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
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let bugs = match Bug::all(files) {
        Ok(bugs) => bugs,
        Err(error) => return vec![Finding::new(FOLDER, format_args!("{error:#}"))],
    };
    let mut findings = plant(&bugs, files).err().unwrap_or_default();
    let traps: Vec<&str> = files.file(TRAPS).map(|file| tests_of(&file.text).collect()).unwrap_or_default();
    if traps.is_empty() {
        findings.push(Finding::new(TRAPS, "it holds no test"));
    }
    // A later detector does not run if an earlier one finds the bug.
    let firsts = bugs.iter().filter_map(|bug| bug.detectors.first());
    let named: Vec<&str> = firsts.flat_map(Detector::traps).map(String::as_str).collect();
    for trap in traps.iter().filter(|trap| !named.contains(trap)) {
        findings.push(Finding::new(TRAPS, format_args!("no bug has to be found by {trap}")));
    }
    for name in named.iter().filter(|name| !traps.contains(name)) {
        findings.push(Finding::new(TRAPS, format_args!("it holds no test {name}")));
    }
    findings
}

/// Returns the names of the tests in a file.
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

    const FOUND_BY: &str = "what = 'x'\nfound-by = ['traps a']\n";

    fn bug(name: &str, old: &str, new: &str) -> Bug {
        let replace =
            format!("[[replace]]\nfile = 'a.rs'\nold = '{old}'\nnew = '{new} planted::is_on(\"{name}\")'");
        Bug::parse(name, &format!("{FOUND_BY}{replace}")).unwrap()
    }

    /// Plants the bugs in a file with this text.
    fn planted(bugs: &[Bug], text: &str) -> Result<String, String> {
        let table: Table = SWITCH.parse().unwrap();
        let switch = replacements(&table).unwrap();
        // The switch must find its own texts, but its result is not checked here.
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        for Replacement { file, old, .. } in &switch {
            files.entry(file).or_default().push_str(old);
        }
        files.insert("a.rs", text.to_owned());
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        match plant(bugs, &Repository::of(&files)) {
            Ok(changed) => Ok(changed["a.rs"].clone()),
            Err(findings) => Err(findings.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn all_bugs_are_planted_whatever_their_order() {
        let bugs = [bug("p", "one", "1"), bug("q", "two", "2")];
        let text = "2 planted::is_on(\"q\") and 1 planted::is_on(\"p\")";
        assert_eq!(planted(&bugs, "two and one").unwrap(), text);
    }

    #[test]
    fn a_text_that_does_not_occur_once_is_named_with_its_bug() {
        for (text, count) in [("nothing", 0), ("one one", 2)] {
            let error = planted(&[bug("p", "one", "1"), bug("q", "nothing", "2")], text).unwrap_err();
            assert!(error.contains("p: its text") && error.contains(&format!("{count} times")), "{error}");
        }
    }

    #[test]
    fn bugs_that_overlap_are_named() {
        let error = planted(&[bug("p", "one t", "1"), bug("q", "two", "2")], "one two").unwrap_err();
        assert!(error.contains("q: it overlaps p"), "{error}");
    }

    #[test]
    fn a_bug_without_a_place_or_a_detector_is_wrong() {
        let error = |text: &str| format!("{:#}", Bug::parse("p", text).unwrap_err());
        assert!(error("what = 'x'").contains("nothing looks for it"));
        assert!(error(&format!("{FOUND_BY}wat = 1")).contains("`wat`"));
        assert!(error(FOUND_BY).contains("`replace` is missing"));
        let idle = "[[replace]]\nfile = 'a.rs'\nold = 'one'\nnew = '1'";
        assert!(error(&format!("{FOUND_BY}{idle}")).contains("planted nowhere"));
    }

    #[test]
    fn a_trap_without_a_bug_and_a_bug_without_its_trap_are_named() {
        let source = "#[test]\nfn b() {\n}\n\nfn not_a_test() {}\n\n#[tokio::test(x)]\nasync fn c() {}\n";
        assert_eq!(tests_of(source).collect::<Vec<_>>(), ["b", "c"]);
        let bug = format!("{FOUND_BY}[[replace]]\nfile = 'f'\nold = 'o'\nnew = 'planted::is_on(\"p\")'");
        let files = Repository::of(&[(TRAPS, source), (&format!("{FOLDER}/p.toml"), &bug)]);
        let found: String = check(&files).iter().map(ToString::to_string).collect();
        for what in ["found by b", "found by c", "holds no test a", "0 times"] {
            assert!(found.contains(what), "{what}: {found}");
        }
    }
}
