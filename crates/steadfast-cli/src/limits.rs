//! The limits that all verbs of an account share.

use std::path::{Path, PathBuf};

use steadfast::limit::{self, ColdStart, InvalidLimiter, ZoneLimiter};

use crate::{
    account::Account,
    config,
    exit::print_note,
    journal::{beside, with_source},
};

/// The file in which the verbs of one account tell each other what they have spent.
///
/// The gateway counts by token, whichever command and journal sends. The file lies beside the account's token store,
/// also if the token was given. One process holds it at a time.
pub(crate) struct Limits(Option<PathBuf>);

impl Limits {
    pub(crate) fn of(account: &Account) -> Self {
        // A given token needs no store, so a store that cannot be used is no reason to fail.
        Self(account.store().ok().map(|store| beside(store.path(), ".limits")))
    }

    /// Returns the file; `None` if the account has no store that can be used.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// Returns limits that begin with what other verbs have spent. `None`, after a note, if another program holds the
    /// file or it cannot be used.
    pub(crate) fn begin(&self) -> Option<ZoneLimiter> {
        let path = self.0.as_ref()?;
        let limits = zones().ends_with_process();
        match limits.cold_start(ColdStart::Journal(path.clone())).build() {
            Ok(limiter) => Some(limiter),
            Err(error) => {
                let why = match error {
                    InvalidLimiter::JournalInUse(_) => {
                        "another program of this account is running".to_owned()
                    }
                    error => with_source(&error),
                };
                print_note(format_args!(
                    "steadfast: {why} ({}): this command does not know what it spends, so either may meet a 429; if both place \
                     orders, each may take an equal order of the other for its own",
                    path.display()
                ));
                None
            }
        }
    }
}

/// Returns the service's zones, as the config file of this run changes them.
pub(crate) fn zones() -> limit::Builder {
    let preset = ZoneLimiter::builder().preset();
    match config::file() {
        Some(file) => file.zones().change(preset),
        None => preset,
    }
}

/// Returns the name under which the verbs count an account's requests.
pub(crate) fn counted_as(account: &Account) -> limit::Account {
    limit::Account::new(account.base.to_string())
}
