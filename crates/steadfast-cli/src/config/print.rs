//! `--print-config`: each value, and where it comes from.

use clap::parser::ValueSource;

use super::{
    Origins, command, file,
    key::{self, Key, Kind, SECRETS, ZONE_TABLES},
    options::{find, option},
    refuse_empty_address, zones,
};
use crate::{exit::Failed, secret, stdout::print_line};

/// Prints the values of a verb as a config file, with their origins as comments.
pub(crate) fn show(Origins { path, given, taken }: &Origins) -> Result<(), Failed> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let mut command = command();
    command.build();
    let Some(verb) = find(&command, &path) else { return Ok(()) };
    let show = |key: &Key| {
        let Some(option) = option(verb, &key.name) else { return };
        let id = option.get_id().as_str();
        let value = taken
            .get_raw(id)
            .map(|values| values.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>());
        let is_given = |source| given.value_source(id) == Some(source) && taken.value_source(id).is_some();
        let of_file = file().and_then(|file| Some((file, file.taken(key.table, &key.name)?)));
        let origin = match (&of_file, option.get_env()) {
            _ if is_given(ValueSource::CommandLine) => format!("--{}", key.name),
            (_, Some(name)) if is_given(ValueSource::EnvVariable) => name.to_string_lossy().into_owned(),
            (Some((file, entry)), _) if taken.value_source(id) == Some(ValueSource::CommandLine) => {
                file.place(entry)
            }
            _ => "default".to_owned(),
        };
        match (key.kind, value) {
            (Kind::Texts, Some(values)) => print_line(format_args!("{} = {values:?} # {origin}", key.name)),
            (Kind::Text, Some(values)) => {
                print_line(format_args!("{} = {:?} # {origin}", key.name, values.concat()))
            }
            (_, Some(values)) => print_line(format_args!("{} = {} # {origin}", key.name, values.concat())),
            (_, None) => print_line(format_args!("# {} is not set", key.name)),
        }
    };
    let table = key::own_table(&path).unwrap_or_default();
    let has_account = option(verb, "base-url").is_some();
    for key in key::of_table("") {
        // A replay's own command line decides whether it is real.
        if key.name == "base-url" && path == ["replay"] && given.get_raw("base_url").is_none() {
            let is_rehearsal = given.try_get_one::<bool>("sandbox").ok().flatten() == Some(&true);
            show_of_replay(is_rehearsal)?;
        } else {
            show(&key);
        }
    }
    if has_account {
        for name in SECRETS {
            match secret::origin(&name.to_uppercase().replace('-', "_"))? {
                Some(origin) => print_line(format_args!("{name} = \"***\" # {origin}")),
                None => print_line(format_args!("# {name} is not set")),
            }
        }
    }
    if has_account {
        ZONE_TABLES.iter().for_each(|(table, _)| show_zone(table));
    }
    if !table.is_empty() {
        print_line(format_args!("[{table}]"));
        key::of_table(table).iter().for_each(show);
    }
    Ok(())
}

fn show_zone(table: &str) {
    print_line(format_args!("[{table}]"));
    for key in key::of_table(table) {
        let of_file = file().and_then(|file| Some((file, file.entry(table, &key.name)?)));
        let origin = of_file.map_or("default".to_owned(), |(file, entry)| file.place(entry));
        let name = &key.name;
        match (name.as_str(), key.kind, of_file.map(|(_, entry)| entry)) {
            // With those of the service that it leaves as they are.
            ("limits", _, entry) => {
                let limits = zones::limits(table, entry).unwrap_or_default();
                print_line(format_args!("{name} = {limits:?} # {origin}"));
            }
            (_, _, None) => print_line(format_args!("# {name} is not set")),
            (_, Kind::Number, Some(entry)) => {
                print_line(format_args!("{name} = {} # {origin}", entry.text()))
            }
            (_, _, Some(entry)) => print_line(format_args!("{name} = {:?} # {origin}", entry.text())),
        }
    }
}

/// Shows the address of a `replay` whose command line names none. An empty one is an error, as it is for the run.
fn show_of_replay(is_rehearsal: bool) -> Result<(), Failed> {
    if !is_rehearsal {
        refuse_empty_address()?;
    }
    if let Some(value) = secret::variable_of("STEADFAST_BASE_URL")? {
        print_line(format_args!("base-url = {value:?} # STEADFAST_BASE_URL"));
    } else if let Some((file, entry)) = file().and_then(|file| Some((file, file.entry("", "base-url")?))) {
        print_line(format_args!("base-url = {:?} # {}", entry.text(), file.place(entry)));
    } else {
        print_line("# base-url is not set");
    }
    Ok(())
}
