//! The options that a config file's entries stand for, and what their parsers say of the values.

use std::ffi::OsString;

use clap::{Arg, Command, builder::Resettable, error::ErrorKind};
use tracing_subscriber::EnvFilter;

use super::{
    Problem, command,
    entry::Entry,
    key::{self, Kind},
};

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

/// Returns an entry as words of a command line.
pub(super) fn as_arguments(entry: &Entry) -> Vec<OsString> {
    let name = &entry.key.name;
    match entry.key.kind {
        Kind::Switch => vec![format!("--{name}").into()],
        _ => entry.texts().iter().map(|text| format!("--{name}={text}").into()).collect(),
    }
}

fn without_variables(command: Command) -> Command {
    command.mut_args(|option| option.env(Resettable::Reset)).mut_subcommands(without_variables)
}

/// Returns the verb of these words.
pub(super) fn find<'a>(command: &'a Command, path: &[&str]) -> Option<&'a Command> {
    path.iter().try_fold(command, |at, name| at.find_subcommand(name))
}

/// Returns the option of a verb by its long name.
pub(super) fn option<'a>(verb: &'a Command, name: &str) -> Option<&'a Arg> {
    verb.get_arguments().find(|arg| arg.get_long() == Some(name))
}

/// True if one of two options says that it cannot be used with the other.
pub(super) fn exclude(verb: &Command, one: &Arg, other: &Arg) -> bool {
    let named =
        |of: &Arg, it: &Arg| verb.get_arg_conflicts_with(of).iter().any(|arg| arg.get_id() == it.get_id());
    named(one, other) || named(other, one)
}
