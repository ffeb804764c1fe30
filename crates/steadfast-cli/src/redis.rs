//! The store that the machines of an account share.

use std::{path::PathBuf, sync::Arc, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use steadfast::{
    limit::{self, ZoneLimiter},
    redis::{Connect, RedisStore, Seal, Shared, StoreError},
};

use crate::{account::Account, exit::Failed, limits::zones, readable, secret::find};

/// How long the gateway may still count a request of a process that died: its own timeout.
const COUNTED_AFTER_DEATH: Duration = Duration::from_secs(30);

/// The option of the verbs that use a shared store.
#[derive(clap::Args)]
pub(crate) struct Redis {
    /// The Redis or Valkey server that the machines of the account share, without a password. One with a password comes from
    /// STEADFAST_REDIS_URL, STEADFAST_REDIS_URL_FILE or STEADFAST_REDIS_URL_COMMAND.
    #[arg(long = "redis", value_name = "URL", value_parser = without_password)]
    pub(crate) url: Option<String>,
    /// The certificate authorities that a store at a rediss:// address is trusted by instead of the public ones: a PEM file.
    #[arg(long = "redis-ca", value_name = "FILE", env = "STEADFAST_REDIS_CA", hide_env_values = true)]
    pub(crate) ca: Option<PathBuf>,
}

/// Where the store is, and whom it is trusted by.
pub(crate) struct At {
    address: SecretString,
    authorities: Option<Vec<u8>>,
}

/// Refuses an address that shows a password to all who see the list of processes.
fn without_password(text: &str) -> Result<String, &'static str> {
    if text.contains('@') {
        return Err(
            "an address with a user or a password is no option, which others can read: give it by STEADFAST_REDIS_URL, \
                    STEADFAST_REDIS_URL_FILE or STEADFAST_REDIS_URL_COMMAND",
        );
    }
    Ok(text.to_owned())
}

impl Redis {
    /// Returns where the store is, if an address is given: by the option, else as a secret.
    pub(crate) async fn at(self) -> Result<Option<At>, Failed> {
        let address = match self.url {
            Some(url) => Some(url.into()),
            None => find("REDIS_URL").await?,
        };
        let Some(address) = address else { return Ok(None) };
        hide_password_of(address.expose_secret());
        let read = |file: PathBuf| {
            std::fs::read(&file).map_err(|error| {
                Failed::usage(format_args!("--redis-ca {}: {error}; nothing was sent", file.display()))
            })
        };
        Ok(Some(At { address, authorities: self.ca.map(read).transpose()? }))
    }
}

impl At {
    /// Connects to the store for this account.
    pub(crate) fn connect(&self, account: &limit::Account) -> Connect {
        let connect = Shared::connect(self.address.expose_secret(), account);
        match &self.authorities {
            Some(authorities) => connect.root_certificates(authorities.clone()),
            None => connect,
        }
    }
}

/// Masks the password in everything that is written from now on.
fn hide_password_of(address: &str) {
    let user_info =
        address.rsplit_once('@').map(|(before, _)| before.split_once("://").map_or(before, |(_, it)| it));
    if let Some((_, password)) = user_info.and_then(|info| info.split_once(':'))
        && !password.is_empty()
    {
        readable::hide(&password.to_owned().into());
    }
}

/// A store that can keep the orders of an account.
pub(crate) struct Store {
    pub(crate) shared: Shared,
    pub(crate) account: limit::Account,
    /// Host and port.
    pub(crate) name: String,
    pub(crate) round_trip: Duration,
}

impl Store {
    /// Connects for the orders of this account. All machines name it in the same way, whatever their API keys are.
    pub(crate) async fn connect(at: &At, account: &Account) -> Result<Self, Failed> {
        let identity = account.identity();
        let user = identity.user_label().ok_or_else(|| {
            Failed::usage(
                "STEADFAST_CLIENT_ID is not set: machines that share a store know the account by it",
            )
        })?;
        let account = limit::Account::new(user);
        let failed = |error: StoreError| match error {
            StoreError::Unreachable { .. } => Failed::unavailable(format_args!("{error}; nothing was sent")),
            error => Failed::usage(format_args!("{error}; nothing was sent")),
        };
        let shared = at.connect(&account).await.map_err(failed)?;
        let health = shared.health().await.map_err(failed)?;
        let name = health.store;
        if !health.persists {
            return Err(Failed::usage(format_args!(
                "store {name} cannot keep orders: it keeps no append-only file, so a restart forgets them; set appendonly yes \
                 and appendfsync always; nothing was sent"
            )));
        }
        Ok(Self { shared, account, name, round_trip: health.round_trip })
    }

    /// Returns limits that all processes of the account count together.
    pub(crate) fn limits(&self) -> Result<ZoneLimiter, Failed> {
        // The connections of a process that died end with it.
        let limits = zones().arrives_within(COUNTED_AFTER_DEATH);
        limits.count_with(Arc::new(self.shared.clone())).build().map_err(Failed::usage)
    }

    /// Returns the store of the account's token, which all machines share.
    pub(crate) async fn tokens(&self) -> Result<RedisStore, Failed> {
        if let Some(key) = find("SEAL_KEY").await? {
            let seal = Seal::of_text(key).map_err(|error| {
                Failed::usage(format_args!("STEADFAST_SEAL_KEY: {error}; nothing was sent"))
            })?;
            return Ok(self.shared.token_store(seal));
        }
        self.shared.unsealed_token_store().map_err(|error| {
            Failed::usage(format_args!(
                "{error}: STEADFAST_SEAL_KEY is not set, the same on all machines; nothing was sent"
            ))
        })
    }
}

/// Returns a name for this process that a person finds: the machine's and the process's number.
pub(crate) fn process_name() -> Result<String, Failed> {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = crate::secret::variable_of("COMPUTERNAME")?.unwrap_or_else(|| "machine".to_owned());
    Ok(format!("{machine}/{}", std::process::id()))
}
