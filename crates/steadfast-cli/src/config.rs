//! The config file: a layer below the command line and the environment.
//!
//! A value holds from the first of these that has it: the command line, a `STEADFAST_` variable, a credential of systemd
//! (secrets alone), the file, the default. The file's options become a part of the command line, so one parser judges
//! all of them.

mod entry;
mod file;
mod key;
mod line;
mod options;
pub(crate) mod print;
mod zones;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, value_parser};

pub(crate) use self::{
    file::ConfigFile,
    key::{Key, SECRETS},
};
use crate::exit::Failed;

/// The file of this run, if there is one.
static FILE: OnceLock<ConfigFile> = OnceLock::new();

/// The options that the command line or the environment gives.
static GIVEN: OnceLock<Vec<String>> = OnceLock::new();

/// True if the command line or the environment gives an option, so that the file's value does not hold.
pub(crate) fn is_given(option: &str) -> bool {
    GIVEN.get().is_some_and(|given| given.iter().any(|it| it == option))
}

/// Returns the file of this run.
pub(crate) fn file() -> Option<&'static ConfigFile> {
    FILE.get()
}

/// Returns the service's address of the file, for a verb that has to know that the command line does not name it.
pub(crate) fn base_url() -> Option<&'static str> {
    file()?.entry("", "base-url").map(|entry| entry.text())
}

/// Refuses an empty address in the environment, which was meant to name a service: a rehearsal would be taken for trading.
pub(crate) fn refuse_empty_address() -> Result<(), Failed> {
    if std::env::var_os("STEADFAST_BASE_URL").is_some_and(|value| value.is_empty()) {
        return Err(Failed::usage(
            "STEADFAST_BASE_URL is empty: nothing was sent; name the service, or give --sandbox to rehearse",
        ));
    }
    Ok(())
}

/// A command line that was read.
pub(crate) enum Parsed {
    Run(Box<crate::Args>),
    /// It asks where its values come from.
    Show(Box<Origins>),
}

/// The values of a verb: what the command line itself and the environment have, and what holds with the file.
pub(crate) struct Origins {
    path: Vec<String>,
    given: ArgMatches,
    taken: ArgMatches,
}

/// Reads a command line, and the config file that it or the environment names.
pub(crate) fn parse(line: Vec<OsString>) -> Result<Parsed, Refused> {
    let lenient = command().ignore_errors(true).try_get_matches_from(&line);
    let (path, given) = match &lenient {
        Ok(matches) => deepest(matches),
        // It asks for help, or for the version.
        Err(_) => (Vec::new(), &ArgMatches::default()),
    };
    let mut whole = line;
    if let Some(named) = given.try_get_one::<PathBuf>("config").ok().flatten() {
        let file = ConfigFile::read(named).map_err(|problems| Refused::File(problems.into()))?;
        let options = line::insert(&mut whole, &file, &path, given);
        // They are set once.
        let _ = GIVEN.set(options);
        let _ = FILE.set(file);
    }
    let matches = command().try_get_matches_from(&whole);
    let matches = matches.map_err(|error| Refused::Line(line::with_origin(error, &path, &whole)))?;
    if given.try_get_one::<bool>("print_config").ok().flatten() == Some(&true) {
        let (path, taken) = deepest(&matches);
        let path = path.into_iter().map(str::to_owned).collect();
        return Ok(Parsed::Show(Box::new(Origins { path, given: given.clone(), taken: taken.clone() })));
    }
    crate::Args::from_arg_matches(&matches).map(|args| Parsed::Run(Box::new(args))).map_err(Refused::Line)
}

/// Why a command line is not run.
pub(crate) enum Refused {
    Line(clap::Error),
    File(Failed),
}

/// Returns the command with the options of the config file, for each verb that uses one.
pub(crate) fn command() -> Command {
    with_config(crate::Args::command(), &mut Vec::new())
}

fn with_config(command: Command, path: &mut Vec<String>) -> Command {
    let command = command.mut_subcommands(|verb| {
        path.push(verb.get_name().to_owned());
        let verb = with_config(verb, path);
        path.pop();
        verb
    });
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    if key::own_table(&words).is_none() {
        return command;
    }
    let file = Arg::new("config").long("config").value_name("FILE").env("STEADFAST_CONFIG");
    let file = file.hide_env_values(true).value_parser(value_parser!(PathBuf));
    let show = Arg::new("print_config").long("print-config").action(ArgAction::SetTrue);
    command
        .arg(file.help("A TOML file with options and secrets; `docs/sidecar.md` has its keys"))
        .arg(show.help("Print each value and where it comes from, secrets as ***; then end"))
}

/// Returns the verb of a command line and what was given to it.
fn deepest(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut path, mut at) = (Vec::new(), matches);
    while let Some((name, below)) = at.subcommand() {
        path.push(name);
        at = below;
    }
    (path, at)
}

/// Something that is wrong with a config file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    line: Option<usize>,
    what: String,
}

impl Problem {
    fn of_file(what: impl Into<String>) -> Self {
        Self { line: None, what: what.into() }
    }

    fn at(line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), what: what.into() }
    }
}

/// The mistakes in a config file, in the sequence of its lines.
#[derive(Debug)]
pub(crate) struct Problems {
    path: PathBuf,
    all: Vec<Problem>,
}

impl Problems {
    fn new(path: &Path, mut all: Vec<Problem>) -> Self {
        all.sort_by_key(|problem| problem.line);
        Self { path: path.to_owned(), all }
    }
}

impl std::fmt::Display for Problems {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, Problem { line, what }) in self.all.iter().enumerate() {
            let (end, path) = (if index == 0 { "" } else { "\n" }, self.path.display());
            match line {
                Some(line) => write!(f, "{end}{path}:{line}: {what}")?,
                None => write!(f, "{end}{path}: {what}")?,
            }
        }
        Ok(())
    }
}

impl From<Problems> for Failed {
    fn from(problems: Problems) -> Self {
        Self::usage(problems)
    }
}
