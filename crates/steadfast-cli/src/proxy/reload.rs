//! A running proxy takes over its changed config file, as a whole or not at all.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use secrecy::SecretString;
use steadfast_proxy::{
    Proxy,
    front::{Admission, Host},
};

use super::{admission, supervisor::Supervisor, upstream::kept_token};
use crate::{
    config::{self, ConfigFile, Key},
    exit::{Failed, print_note},
    log,
};

/// The options that can be changed while the proxy runs; those without a key in the file are read again all the same.
#[derive(Clone)]
pub(super) struct Changeable {
    pub(super) token: SecretString,
    /// The file of `token`; `None` if it was made for this run.
    pub(super) token_file: Option<PathBuf>,
    pub(super) read_token_file: Option<PathBuf>,
    pub(super) allow_host: Vec<Host>,
    pub(super) read_only: bool,
    pub(super) drain: u32,
}

/// The keys of [`Changeable`], and that of the log.
const CHANGEABLE: [&str; 5] = ["allow-host", "drain", "log", "read-only", "read-token-file"];

/// Reads the config file again, and changes the proxy.
pub(super) struct Reload {
    proxy: Proxy,
    supervisor: Arc<Supervisor>,
    drain: Arc<AtomicU32>,
    is_sandbox: bool,
    /// The values for settings that the file does not mention.
    without_file: Changeable,
    /// The file that holds now. Locked for the whole of a change, so that two requests for it do not mix.
    now: Mutex<ConfigFile>,
}

impl Reload {
    /// Prepares for changes of `file`. `proxy` is the one to change.
    pub(super) fn new(
        proxy: Proxy,
        supervisor: Arc<Supervisor>,
        file: ConfigFile,
        options: Changeable,
        is_sandbox: bool,
    ) -> Self {
        let drain = Arc::new(AtomicU32::new(options.drain));
        let without_file = without(&file, options, is_sandbox);
        Self { proxy, supervisor, drain, is_sandbox, without_file, now: Mutex::new(file) }
    }

    /// Returns how long requests on their way may take to be answered in the end.
    pub(super) fn drain(&self) -> Duration {
        Duration::from_secs(self.drain.load(Ordering::Relaxed).into())
    }

    /// Takes over the changed file. Returns what has changed, in words, or why nothing has.
    pub(super) fn run(&self) -> Result<String, String> {
        let mut now = self.now.lock();
        if !self.proxy.is_running() {
            return Err("the proxy is ending".to_owned());
        }
        self.supervisor.reloading();
        let ended = self.change(&mut now);
        self.supervisor.ready();
        match &ended {
            Ok(told) => print_note(format_args!("steadfast: {told}")),
            Err(told) => print_note(format_args!("steadfast: {told}\nsteadfast: the config stays as it was")),
        }
        ended
    }

    fn change(&self, now: &mut ConfigFile) -> Result<String, String> {
        let text = |failed: Failed| failed.to_string();
        let file = ConfigFile::read(now.path()).map_err(|problems| text(problems.into()))?;
        let changed = changed(now, &file, self.is_sandbox);
        let fixed: Vec<String> =
            changed.iter().filter(|key| !is_changeable(key)).map(|key| place(&file, key)).collect();
        if !fixed.is_empty() {
            return Err(format!("{}: needs a restart, and nothing was changed", fixed.join(", ")));
        }
        // Nothing is changed before all of it is known to be valid.
        let options = self.options(&file).map_err(text)?;
        let admission: Admission = admission(&options).map_err(text)?;
        if changed.iter().any(|key| key.name == "log") {
            log::change(file.entry("", "log").map_or(log::OFF, |entry| entry.text())).map_err(text)?;
        }
        let new_tokens = self.proxy.admit(admission);
        self.drain.store(options.drain, Ordering::Relaxed);
        let mut told: Vec<String> = changed.iter().map(|key| key.name.clone()).collect();
        if new_tokens {
            told.push("the local tokens".to_owned());
        }
        *now = file;
        Ok(match told.len() {
            0 => "config read again: nothing has changed".to_owned(),
            _ => format!("config read again: changed {}", told.join(", ")),
        })
    }

    /// Returns the options of a changed file.
    fn options(&self, file: &ConfigFile) -> Result<Changeable, Failed> {
        let mut options = self.without_file.clone();
        for entry in file.entries().iter().filter(|entry| concerns(&entry.key, self.is_sandbox)) {
            let invalid = |error: &dyn std::error::Error| {
                Failed::usage(format_args!("{}: {}: {error}", file.place(entry), entry.key.name))
            };
            match (entry.key.table, entry.key.name.as_str()) {
                ("proxy", "read-token-file") => options.read_token_file = Some(entry.text().into()),
                ("proxy", "allow-host") => {
                    let hosts = entry.texts().iter().map(|host| host.parse());
                    options.allow_host = hosts.collect::<Result<_, _>>().map_err(|error| invalid(&error))?;
                }
                ("proxy", "read-only") => options.read_only = entry.text() == "true",
                ("proxy", "drain") => {
                    options.drain = entry.text().parse().map_err(|error| invalid(&error))?;
                }
                _ => {}
            }
        }
        if let Some(path) = &options.token_file {
            options.token = kept_token(path)?;
        }
        Ok(options)
    }
}

/// Returns the options as they are without the file.
fn without(file: &ConfigFile, options: Changeable, is_sandbox: bool) -> Changeable {
    let mut before = options;
    for entry in file.entries().iter().filter(|entry| concerns(&entry.key, is_sandbox)) {
        match (entry.key.table, entry.key.name.as_str()) {
            ("proxy", "read-token-file") => before.read_token_file = None,
            ("proxy", "allow-host") => before.allow_host = Vec::new(),
            ("proxy", "read-only") => before.read_only = false,
            ("proxy", "drain") => before.drain = super::DRAIN,
            _ => {}
        }
    }
    before
}

/// True for a key whose value this run takes from the file.
fn concerns(key: &Key, is_sandbox: bool) -> bool {
    let is_served = key.table.is_empty() || key.table == "proxy" || key.is_of_zone();
    is_served && !config::is_given(&key.name) && !(is_sandbox && key.is_of_account())
}

fn is_changeable(key: &Key) -> bool {
    CHANGEABLE.contains(&key.name.as_str())
}

/// Returns the keys of a proxy whose values two files do not have in common.
fn changed(one: &ConfigFile, other: &ConfigFile, is_sandbox: bool) -> Vec<Key> {
    let keys = one.entries().iter().chain(other.entries()).map(|entry| entry.key.clone());
    let keys: BTreeSet<Key> = keys.filter(|key| concerns(key, is_sandbox)).collect();
    let texts =
        |file: &ConfigFile, key: &Key| file.entry(key.table, &key.name).map(|entry| entry.texts().to_vec());
    keys.into_iter().filter(|key| texts(one, key) != texts(other, key)).collect()
}

fn place(file: &ConfigFile, key: &Key) -> String {
    match file.entry(key.table, &key.name) {
        Some(entry) => format!("{}: {}", file.place(entry), key.name),
        None => format!("{}: {} (removed)", file.path().display(), key.name),
    }
}
