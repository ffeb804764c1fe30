//! Whose token it is, where it is kept, and how it is fetched: from the options and the environment.

use std::{path::PathBuf, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use steadfast::{
    BaseUrl,
    auth::{ApiKey, FileStore, Identity, StoreError, TokenStore},
};

use crate::{
    exit::{Failed, print_note},
    secret::{find, variable_of},
};

/// What the help of every verb with an account says.
pub(crate) const SECRETS: &str = "\
Secrets come from the environment, never from options: STEADFAST_API_KEY; STEADFAST_CLIENT_ID, STEADFAST_PASSWORD and \
STEADFAST_TOTP_SECRET for logins with an authenticator's secret; STEADFAST_CLIENT_SECRET and STEADFAST_REDIRECT_URI \
for logins in a browser. NAME_FILE names a file that holds the value, NAME_COMMAND a command that prints it; what is \
still missing is asked for at a terminal.";

/// Which account.
#[derive(clap::Args)]
pub(crate) struct Whose {
    /// The service's base address, which ends in /v2.
    #[arg(long, value_name = "URL", env = "STEADFAST_BASE_URL")]
    pub(crate) base_url: BaseUrl,
    /// The file that keeps the token; one for each account below the user's state directory if absent.
    #[arg(long, value_name = "FILE", env = "STEADFAST_STORE")]
    store: Option<PathBuf>,
}

/// An account of the service.
pub(crate) struct Account {
    pub(crate) base: BaseUrl,
    pub(crate) api_key: ApiKey,
    pub(crate) client_id: Option<SecretString>,
    store: Option<PathBuf>,
}

impl Account {
    pub(crate) async fn read(args: Whose) -> Result<Self, Failed> {
        let Whose { base_url: base, store } = args;
        if base.is_clear_text() && !base.is_loopback() {
            return Err(Failed::usage("base url is clear-text http to another machine"));
        }
        let key = crate::secret::find_or_ask("API_KEY", "API key").await?;
        let api_key = ApiKey::new(key).map_err(Failed::usage)?;
        Ok(Self { base, api_key, client_id: find("CLIENT_ID").await?, store })
    }

    /// Whose tokens these are.
    pub(crate) fn identity(&self) -> Identity {
        Identity::new(&self.base.to_string(), &self.api_key, self.user())
    }

    /// The user, if he is known.
    pub(crate) fn user(&self) -> &str {
        self.client_id.as_ref().map_or("", |id| id.expose_secret())
    }

    /// The file that the account's token is kept in.
    pub(crate) fn path(&self) -> Result<PathBuf, Failed> {
        if let Some(path) = &self.store {
            return Ok(path.clone());
        }
        let label = self.identity().label();
        let directory = match (variable_of("XDG_STATE_HOME")?, variable_of("HOME")?) {
            (Some(state), _) => PathBuf::from(state),
            (None, Some(home)) => PathBuf::from(home).join(".local/state"),
            (None, None) => return Err(Failed::usage("neither --store nor HOME says where tokens are kept")),
        };
        Ok(directory.join("steadfast").join(format!("auth-{label}.json")))
    }

    /// The account's store.
    pub(crate) fn store(&self) -> Result<FileStore, Failed> {
        FileStore::open(self.path()?).map_err(store_failed)
    }
}

/// A store that cannot be used, with what the file system says of it, and what to do.
pub(crate) fn store_failed(error: StoreError) -> Failed {
    use std::error::Error;
    match &error {
        StoreError::OpenToOthers { place, .. } => {
            Failed::error(format_args!("{error}: `chmod go-rwx {place}`"))
        }
        StoreError::NotAFile { .. } => {
            Failed::error(format_args!("{error}; name the file itself by --store"))
        }
        StoreError::OtherAccount { .. } => Failed::error(format_args!(
            "{error}; check STEADFAST_BASE_URL, STEADFAST_API_KEY and STEADFAST_CLIENT_ID, or name another file by \
             --store"
        )),
        StoreError::UnknownVersion { .. } => {
            Failed::error(format_args!("{error}; use the newer program, or name another file by --store"))
        }
        StoreError::Garbled { .. } => Failed::error(format_args!(
            "{error}; `steadfast login` replaces it, and one wrong login is left until then"
        )),
        _ => match error.source() {
            Some(source) => Failed::error(format_args!("{error}: {source}")),
            None => Failed::error(error),
        },
    }
}

/// Somebody at a terminal should know what is waited for.
const SOON: Duration = Duration::from_secs(1);

/// Says so if another program holds the right to log in.
pub(crate) async fn note_if_held(store: &FileStore) {
    if tokio::time::timeout(SOON, store.lease()).await.is_err() {
        print_note(format_args!(
            "steadfast: another program is logging in to this account and holds {}.lock; waiting for it",
            store.path().display()
        ));
    }
}
