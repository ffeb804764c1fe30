//! A config file's options as a part of the command line.

use std::{env, ffi::OsString};

use clap::{
    Arg, ArgMatches, Command,
    builder::{Resettable, StyledStr},
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use tracing_subscriber::EnvFilter;

use super::{
    Problem, command,
    entry::Entry,
    file::ConfigFile,
    key::{self, Kind},
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

/// Returns what is wrong with the values.
pub(super) fn problems(entries: &[Entry]) -> Vec<Problem> {
    // A variable that cannot be used is no fault of any line.
    let mut command = without_variables(command());
    command.build();
    let mut problems = Vec::new();
    for entry in entries {
        let verb = key::verb_of(entry.key.table);
        if entry.key.name == "log" {
            if let Err(error) = EnvFilter::try_new(entry.text()) {
                problems.push(Problem::at(entry.line, format!("log: {error}")));
            }
        } else if find(&command, verb).and_then(|verb| option(verb, &entry.key.name)).is_some()
            && let Some(what) = fault(&mut command, verb, entry)
        {
            problems.push(Problem::at(entry.line, what));
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        let Some(verb) = find(&command, key::verb_of(entry.key.table)) else { continue };
        let excluded = entries[..index].iter().find(|other| {
            let options = (option(verb, &entry.key.name), option(verb, &other.key.name));
            let is_same = other.key.table == entry.key.table && !entry.is_off() && !other.is_off();
            is_same && matches!(options, (Some(one), Some(other)) if exclude(verb, one, other))
        });
        if let Some(other) = excluded {
            let (one, other) = (&entry.key.name, &other.key.name);
            problems.push(Problem::at(entry.line, format!("{one} cannot be used with {other}")));
        }
    }
    problems
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

/// Returns what the option's own parser says of a value that it does not take.
fn fault(command: &mut Command, verb: &[&str], entry: &Entry) -> Option<String> {
    if entry.key.kind == Kind::Switch {
        return None;
    }
    let words = [&["steadfast"], verb].concat().into_iter().map(OsString::from);
    let error = command.try_get_matches_from_mut(words.chain(as_arguments(entry))).err()?;
    // Another error is not about this entry: the command line alone need not be complete.
    if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        return None;
    }
    let said = match std::error::Error::source(&error) {
        Some(source) => source.to_string(),
        None => error.to_string().lines().skip(1).find(|line| !line.trim().is_empty())?.trim().to_owned(),
    };
    Some(format!("{}: {said}", entry.key.name))
}

fn as_arguments(entry: &Entry) -> Vec<OsString> {
    let name = &entry.key.name;
    match entry.key.kind {
        Kind::Switch => vec![format!("--{name}").into()],
        _ => entry.texts().iter().map(|text| format!("--{name}={text}").into()).collect(),
    }
}

fn without_variables(command: Command) -> Command {
    command.mut_args(|option| option.env(Resettable::Reset)).mut_subcommands(without_variables)
}

fn find<'a>(command: &'a Command, path: &[&str]) -> Option<&'a Command> {
    path.iter().try_fold(command, |at, name| at.find_subcommand(name))
}

pub(super) fn option<'a>(verb: &'a Command, name: &str) -> Option<&'a Arg> {
    verb.get_arguments().find(|arg| arg.get_long() == Some(name))
}

/// True if one of two options says that it cannot be used with the other.
fn exclude(verb: &Command, one: &Arg, other: &Arg) -> bool {
    let named =
        |of: &Arg, it: &Arg| verb.get_arg_conflicts_with(of).iter().any(|arg| arg.get_id() == it.get_id());
    named(one, other) || named(other, one)
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
