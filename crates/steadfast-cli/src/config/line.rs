//! A config file's options as a part of the command line.

use std::{env, ffi::OsString};

use clap::{
    Arg, ArgMatches, Command,
    builder::StyledStr,
    error::{ContextKind, ContextValue},
    parser::ValueSource,
};

use super::{
    command,
    file::ConfigFile,
    key,
    options::{as_arguments, exclude, find, option},
};

/// Puts the file's options behind the verb, but for those that `given` has already, by itself or from the environment,
/// and those that these exclude. Returns the options that `given` has.
pub(super) fn insert(
    line: &mut Vec<OsString>,
    file: &ConfigFile,
    path: &[&str],
    given: &ArgMatches,
) -> Vec<String> {
    let mut command = command();
    command.build();
    let Some(verb) = find(&command, path) else { return Vec::new() };
    let rehearses = given.try_get_one::<bool>("sandbox").ok().flatten() == Some(&true);
    let is_replay = path == ["replay"];
    let mut added = Vec::new();
    for entry in file.entries() {
        let own = key::own_table(path).and_then(|table| file.taken(table, &entry.key.name));
        let is_served = entry.key.table.is_empty() || own.is_some_and(|own| std::ptr::eq(own, entry));
        // A replay asks before it places orders at a service that its own command line does not name.
        let is_asked_for = is_replay && entry.key.name == "base-url";
        if !is_served || is_asked_for || entry.is_off() || rehearses && entry.key.is_of_account() {
            continue;
        }
        let Some(option) = option(verb, &entry.key.name) else { continue };
        let excluded = verb.get_arguments().any(|other| {
            has(given, other) && (other.get_id() == option.get_id() || exclude(verb, other, option))
        });
        if !excluded {
            added.extend(as_arguments(entry));
        }
    }
    // The verb's words stand in front, because no option stands before them.
    let behind = (1 + path.len()).min(line.len());
    line.splice(behind..behind, added);
    let options = verb.get_arguments().filter(|option| has(given, option));
    options.filter_map(|option| option.get_long().map(str::to_owned)).collect()
}

/// Adds to the error of a value that it is a variable's, if the command line does not give it.
pub(super) fn with_origin(mut error: clap::Error, path: &[&str], line: &[OsString]) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (at_fault, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let mut command = command();
    command.build();
    let options = find(&command, path).into_iter().flat_map(Command::get_arguments);
    let variable = options
        .filter(|option| at_fault.as_ref().is_some_and(|at_fault| option.to_string() == *at_fault))
        .find_map(|option| {
            let name = option.get_env()?;
            let is_its = env::var_os(name)? == **value.as_ref()?;
            let on_line = format!("--{}", option.get_long()?);
            let is_on_line = line.iter().any(|word| word.to_string_lossy().starts_with(&on_line));
            (is_its && !is_on_line).then(|| name.to_string_lossy().into_owned())
        });
    if let Some(name) = variable {
        let tip = StyledStr::from(format!("the value is that of the variable {name}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn has(given: &ArgMatches, option: &Arg) -> bool {
    // `given` lacks a variable that cannot be used. The file's value must not take its place without a word.
    if option.get_env().is_some_and(|name| env::var_os(name).is_some()) {
        return true;
    }
    let id = option.get_id().as_str();
    let known = given.try_contains_id(id).unwrap_or(false);
    known && matches!(given.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}
