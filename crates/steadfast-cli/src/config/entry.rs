//! The text of a config file, taken apart. Pure: no file, no command line.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{
    Problem,
    key::{FORMS, Key, Kind, SECRETS, TABLES, ZONE_KEYS, ZONE_TABLES, nearest, of_table},
};

/// A key with its value. Not to be printed: it may hold a secret.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) line: usize,
    values: Vec<String>,
}

impl Entry {
    /// Returns the value as an option has it; a switch is `true` or `false`.
    pub(crate) fn text(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }

    /// Returns all values; a list has none or several.
    pub(crate) fn texts(&self) -> &[String] {
        &self.values
    }

    pub(super) fn is_off(&self) -> bool {
        self.key.kind == Kind::Switch && self.text() == "false"
    }
}

/// Takes a file's text apart, or returns all that is wrong with it.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Vec<Problem>> {
    let line_of = |at: Range<usize>| text.get(..at.start).unwrap_or(text).matches('\n').count() + 1;
    let top = DeTable::parse(text).map_err(|error| {
        // Its own text quotes the line, which may hold a secret.
        let what = error.message().to_owned();
        vec![error.span().map_or(Problem::of_file(&*what), |at| Problem::at(line_of(at), &*what))]
    })?;
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let mut take = |table: &'static str, name: &str, at: Range<usize>, value: &DeValue<'_>| match entry(
        table,
        name,
        line_of(at),
        value,
    ) {
        Ok(entry) => found.push(entry),
        Err(problem) => problems.push(problem),
    };
    let mut tables = Vec::new();
    for (name, value) in top.get_ref() {
        match value.get_ref() {
            DeValue::Table(zones) if name.get_ref() == "zones" => {
                for (zone, value) in zones {
                    tables.push((table_of_zone(zone.get_ref()), zone.span(), value.get_ref()));
                }
            }
            table @ DeValue::Table(_) => tables.push((table_of(name.get_ref()), name.span(), table)),
            value => take("", name.get_ref(), name.span(), value),
        }
    }
    let mut unknown = Vec::new();
    for (table, at, value) in tables {
        match (table, value) {
            (Ok(table), DeValue::Table(below)) => {
                for (name, value) in below {
                    take(table, name.get_ref(), name.span(), value.get_ref());
                }
            }
            (Ok(table), _) => {
                unknown.push(Problem::at(line_of(at), format!("{table} is a table: [{table}]")));
            }
            (Err(what), _) => unknown.push(Problem::at(line_of(at), what)),
        }
    }
    // A table of the parser is sorted by name.
    found.sort_by_key(|entry| entry.line);
    problems.extend(unknown);
    problems.extend(given_twice(&found));
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

fn entry(table: &'static str, name: &str, line: usize, value: &DeValue<'_>) -> Result<Entry, Problem> {
    let keys = of_table(table);
    let Some(key) = keys.iter().find(|key| key.name == name) else {
        return Err(Problem::at(line, unknown_key(table, name, &keys)));
    };
    let values = match (key.kind, value) {
        (Kind::Text | Kind::Secret, DeValue::String(text)) if !text.is_empty() => {
            Some(vec![text.to_string()])
        }
        (Kind::Texts, DeValue::Array(list)) => {
            let texts = list.iter().map(|value| value.get_ref().as_str().map(str::to_owned));
            texts.collect()
        }
        (Kind::Number, DeValue::Integer(number)) => {
            u64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| vec![number.to_string()])
        }
        (Kind::Switch, DeValue::Boolean(on)) => Some(vec![on.to_string()]),
        _ => None,
    };
    match values {
        Some(values) => Ok(Entry { key: key.clone(), line, values }),
        None => Err(Problem::at(line, format!("{name} wants {}", key.kind.wanted()))),
    }
}

/// Returns the table of that name, or what was probably meant.
fn table_of(name: &str) -> Result<&'static str, String> {
    TABLES.into_iter().find(|table| *table == name).ok_or_else(|| unknown_table(name))
}

/// Returns the table of a zone, or what was probably meant.
fn table_of_zone(name: &str) -> Result<&'static str, String> {
    let of_zone = |name: &str| ZONE_TABLES.into_iter().find(|(_, zone)| zone.as_str() == name);
    if let Some((table, _)) = of_zone(name) {
        return Ok(table);
    }
    let names = ZONE_TABLES.map(|(_, zone)| zone.as_str());
    Err(match nearest(name, names) {
        Some(near) => format!("unknown zone {name:?}: did you mean [zones.{near}]?"),
        None => format!("unknown zone {name:?}; there are {}", names.join(", ")),
    })
}

fn unknown_table(name: &str) -> String {
    if let Ok(table) = table_of_zone(name) {
        return format!("unknown table [{name}]: did you mean [{table}]?");
    }
    if of_table("").iter().any(|key| key.name == name) {
        return format!("{name} is a key, not a table");
    }
    match nearest(name, TABLES.into_iter().chain(["zones"])) {
        Some(near) => format!("unknown table [{name}]: did you mean [{near}]?"),
        None => format!("unknown table [{name}]; there are [{}]", TABLES.join("], [")),
    }
}

fn unknown_key(table: &str, name: &str, keys: &[Key]) -> String {
    let place = if table.is_empty() { "at the top of the file".to_owned() } else { format!("in [{table}]") };
    let told = format!("unknown key {name:?} {place}");
    let spelled = name.to_lowercase().replace('_', "-");
    let tables = [""].into_iter().chain(TABLES).filter(|other| *other != table);
    for other in tables {
        if of_table(other).iter().any(|key| key.name == spelled)
            && !keys.iter().any(|key| key.name == spelled)
        {
            return match other {
                "" => format!("{told}: {spelled} stands at the top of the file, before any table"),
                other => format!("{told}: did you mean {spelled} in [{other}]?"),
            };
        }
    }
    if ZONE_KEYS.iter().any(|(key, _)| *key == spelled) && !table.starts_with("zones.") {
        return format!("{told}: {spelled} stands in the table of a zone, such as [zones.general]");
    }
    match nearest(name, keys.iter().map(|key| key.name.as_str())) {
        Some(near) => format!("{told}: did you mean {near}?"),
        None => {
            let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
            format!("{told}; there are {}", names.join(", "))
        }
    }
}

/// A secret that is given in two ways may be two.
fn given_twice(found: &[Entry]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for secret in SECRETS {
        let is_form = |entry: &&Entry| FORMS.iter().any(|form| entry.key.name == format!("{secret}{form}"));
        let given: Vec<&Entry> = found.iter().filter(is_form).collect();
        if let [first, second, ..] = given[..] {
            let (one, other) = (&first.key.name, &second.key.name);
            problems
                .push(Problem::at(second.line, format!("{other} and {one} give the same thing; keep one")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(Option<usize>, String)> {
        let problems = entries(text).err().unwrap_or_default();
        problems.into_iter().map(|problem| (problem.line, problem.what)).collect()
    }

    #[test]
    fn keys_are_read_with_table_and_line() {
        let text =
            "base-url = \"http://127.0.0.1:1/v2\"\n\n[proxy]\nport = 0x10\n[replay]\nin-order = true\n";
        let found = entries(text).unwrap_or_else(|_| panic!("{:?}", told(text)));
        let found: Vec<_> =
            found.iter().map(|it| (it.line, it.key.table, it.key.name.as_str(), it.text())).collect();
        assert_eq!(
            found,
            [
                (1, "", "base-url", "http://127.0.0.1:1/v2"),
                (4, "proxy", "port", "16"),
                (6, "replay", "in-order", "true")
            ]
        );
    }

    #[test]
    fn each_fault_names_its_line_and_what_was_meant() {
        for (text, line, what) in [
            (
                "\nbase_url = \"x\"",
                2,
                "unknown key \"base_url\" at the top of the file: did you mean base-url?",
            ),
            ("[proxy]\nprot = 1", 2, "unknown key \"prot\" in [proxy]: did you mean port?"),
            ("port = 1", 1, "unknown key \"port\" at the top of the file: did you mean port in [proxy]?"),
            (
                "[proxy]\nbase-url = \"x\"",
                2,
                "unknown key \"base-url\" in [proxy]: base-url stands at the top of the file, before any table",
            ),
            ("[orders]\ncolour = 1", 2, "unknown key \"colour\" in [orders]; there are journal"),
            ("\n[prox]\nport = 1", 2, "unknown table [prox]: did you mean [proxy]?"),
            ("[store]\n", 1, "store is a key, not a table"),
            ("[zones.genral]\n", 1, "unknown zone \"genral\": did you mean [zones.general]?"),
            ("[zones.place-order]\n", 1, "unknown zone \"place-order\": did you mean [zones.place_order]?"),
            (
                "[zones.mine]\n",
                1,
                "unknown zone \"mine\"; there are api_key, data, general, otp, place_order",
            ),
            ("[zones]\ngeneral = 3", 2, "zones.general is a table: [zones.general]"),
            ("[general]\n", 1, "unknown table [general]: did you mean [zones.general]?"),
            ("[zone]\n", 1, "unknown table [zone]: did you mean [zones]?"),
            ("[zones.data]\nlimit = []", 2, "unknown key \"limit\" in [zones.data]: did you mean limits?"),
            (
                "[zones.data]\nport = 1",
                2,
                "unknown key \"port\" in [zones.data]: did you mean port in [proxy]?",
            ),
            ("[zones.data]\nheadroom = -1", 2, "headroom wants a number from 0 on"),
            ("[zones.data]\nlimits = \"5/s\"", 2, "limits wants a list of texts in quotes"),
            (
                "[proxy]\nheadroom = 1",
                2,
                "unknown key \"headroom\" in [proxy]: headroom stands in the table of a zone, such as [zones.general]",
            ),
            ("[proxy]\nport = \"1\"", 2, "port wants a number from 0 on"),
            ("[proxy]\nport = -1", 2, "port wants a number from 0 on"),
            ("[replay]\nin-order = 1", 2, "in-order wants true or false"),
            ("store = \"\"", 1, "store wants a text in quotes"),
            ("proxy = 1", 1, "unknown key \"proxy\" at the top of the file"),
            (
                "api-key-file = \"f\"\napi-key = \"k\"",
                2,
                "api-key and api-key-file give the same thing; keep one",
            ),
        ] {
            let told = told(text);
            assert_eq!(told.len(), 1, "{text}: {told:?}");
            assert!(told[0].0 == Some(line) && told[0].1.starts_with(what), "{text}: {told:?}");
        }
        assert_eq!(told("[proxy]\nprot = 1\ndrian = 2").len(), 2, "all of them are told");
    }

    #[test]
    fn a_fault_of_the_grammar_does_not_quote_its_line() {
        let told = told("store = \"s\"\npassword = \"hunter2\n");
        assert_eq!((told.len(), told[0].0), (1, Some(2)), "{told:?}");
        assert!(!told[0].1.contains("hunter2"), "{told:?}");
    }
}
