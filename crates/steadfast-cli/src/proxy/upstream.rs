use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString};
#[cfg(feature = "redis")]
use steadfast::redis::Standby;
use steadfast::{BaseUrl, Client, dedup::Settings};
use steadfast_call::file::open_own;
use steadfast_proxy::OrdersOf;
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;

#[cfg(feature = "redis")]
use super::owner::Shares;
use super::{
    lock::{Lock, make_folder_of},
    other_journals, random_token,
};
#[cfg(feature = "redis")]
use crate::redis::{At, Store};
use crate::{
    account::{Account, Whose},
    arena::Arena,
    client::{self, OrderJournal},
    exit::{Failed, print_note},
    journal::{beside, folder_of, read_own, user},
    limits::Limits,
    reach::reach,
    readable::hide_tokens_of,
    resends::Resends,
    sends::Sends,
};

/// The service behind a proxy, with all that is kept of it.
pub(super) struct Upstream {
    pub(super) client: Client,
    pub(super) base: BaseUrl,
    /// The account's name on the dashboard: no secret, and the same in the names of its files.
    pub(super) account: String,
    pub(super) token: SecretString,
    pub(super) token_file: Option<PathBuf>,
    pub(super) journal: Option<PathBuf>,
    /// The orders, if other machines share them.
    #[cfg(feature = "redis")]
    pub(super) shares: Option<(Shares, Standby)>,
    arena: Option<Arena>,
    _lock: Option<Lock>,
}

/// Without the feature nothing is shared.
#[cfg(not(feature = "redis"))]
type At = SecretString;

/// The places where an account's token, journal and shared state are kept.
pub(super) struct Kept {
    pub(super) store: Option<PathBuf>,
    pub(super) journal: Option<PathBuf>,
    pub(super) token_file: Option<PathBuf>,
    /// The store that several machines share.
    pub(super) shared_at: Option<At>,
}

impl Upstream {
    /// Opens the service at `base`, or a sandbox of its own.
    pub(super) async fn open(base: Option<BaseUrl>, kept: Kept, resends: Resends) -> Result<Self, Failed> {
        let Kept { store, journal, token_file, shared_at } = kept;
        let Some(base_url) = base else { return Self::sandbox(journal, token_file, resends).await };
        let whose = Whose { base_url, store };
        #[cfg(feature = "redis")]
        if let Some(at) = shared_at {
            if let Some(journal) = journal {
                return Err(Failed::usage(format_args!(
                    "journal {} cannot be used: the orders' journal is in the store that is shared; nothing was sent",
                    journal.display()
                )));
            }
            return Self::shared(whose, &at, token_file, resends).await;
        }
        #[cfg(not(feature = "redis"))]
        drop(shared_at);
        Self::service(whose, journal, token_file, resends).await
    }

    async fn sandbox(
        journal: Option<PathBuf>,
        token_file: Option<PathBuf>,
        resends: Resends,
    ) -> Result<Self, Failed> {
        let arena = Arena::serve(Sandbox::builder().build().map_err(Failed::error)?).await?;
        let token = match &token_file {
            Some(path) => token_in(path)?,
            None => random_token()?,
        };
        let (base, client) = client::rehearse(&arena, journal.clone(), resends, &Sends::default())?;
        let account = "sandbox".to_owned();
        Ok(Self {
            client,
            base,
            account,
            token,
            token_file,
            journal,
            #[cfg(feature = "redis")]
            shares: None,
            arena: Some(arena),
            _lock: None,
        })
    }

    async fn service(
        whose: Whose,
        journal: Option<PathBuf>,
        token_file: Option<PathBuf>,
        resends: Resends,
    ) -> Result<Self, Failed> {
        let account = Account::read(whose).await?;
        let lock = Lock::of(&account)?;
        let access = account.access().await?;
        let journal = match journal {
            Some(journal) => journal,
            None => {
                let journal = beside(&account.path()?, ".proxy.journal");
                let state = account.folder()?;
                let folders = [folder_of(&journal), &state];
                let today = Settings::default().today();
                other_journals::warnings(&journal, &account.base, folders, today).iter().for_each(print_note);
                journal
            }
        };
        user::claim(&journal, &account.identity())?;
        let token_file = token_file.unwrap_or_else(|| beside(&journal, ".token"));
        make_folder_of(&token_file)?;
        let token = token_in(&token_file)?;
        let limits = Limits::of(&account).begin();
        let base = account.base.clone();
        let orders = OrderJournal::new(journal.clone(), &Sends::default()).even_if_full();
        let client = client::create(base.clone(), access, Some(orders), limits, resends)?;
        hide_tokens_of(client.tokens());
        reach(&base).await?;
        let (account, token_file, journal) = (account.identity().label(), Some(token_file), Some(journal));
        Ok(Self {
            client,
            base,
            account,
            token,
            token_file,
            journal,
            #[cfg(feature = "redis")]
            shares: None,
            arena: None,
            _lock: Some(lock),
        })
    }

    /// Opens a service whose limits and orders other machines share.
    #[cfg(feature = "redis")]
    async fn shared(
        whose: Whose,
        at: &At,
        token_file: Option<PathBuf>,
        resends: Resends,
    ) -> Result<Self, Failed> {
        let account = Account::read(whose).await?;
        let lock = Lock::in_folders(&account)?;
        let store = Store::connect(at, &account).await?;
        let token_file = match token_file {
            Some(token_file) => token_file,
            // That of a sidecar that shares nothing, so that programs need no change.
            None => beside(&beside(&account.path()?, ".proxy.journal"), ".token"),
        };
        make_folder_of(&token_file)?;
        let token = token_in(&token_file)?;
        let name = account.identity().label();
        let (shares, standby, client) = Shares::open(store, account, resends).await?;
        let base = shares.base().clone();
        reach(&base).await?;
        Ok(Self {
            client,
            base,
            account: name,
            token,
            token_file: Some(token_file),
            journal: None,
            shares: Some((shares, standby)),
            arena: None,
            _lock: Some(lock),
        })
    }

    /// Returns the account or the sandbox whose orders are placed.
    pub(super) fn orders_of(&self) -> OrdersOf {
        match self.arena {
            Some(_) => OrdersOf::Sandbox(self.base.to_string()),
            None => OrdersOf::Account(self.account.clone()),
        }
    }

    /// Serves the admin API of the sandbox, if there is one.
    pub(super) async fn serve_sandbox_admin(&self) -> Result<Option<SocketAddr>, Failed> {
        let Some(arena) = &self.arena else { return Ok(None) };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Failed::error)?;
        let address = listener.local_addr().map_err(Failed::error)?;
        let sandbox = arena.sandbox.clone();
        tokio::spawn(async move { sandbox.serve_admin(listener, std::future::pending()).await });
        Ok(Some(address))
    }
}

/// Returns the token in a file that only its user can read.
pub(super) fn kept_token(path: &Path) -> Result<SecretString, Failed> {
    read_token(path).map_err(|error| Failed::usage(format!("{}: {error}", path.display())))
}

fn read_token(path: &Path) -> std::io::Result<SecretString> {
    Ok(read_own(path)?.trim().to_owned().into())
}

/// As [`kept_token`]. Makes one if there is no file.
pub(super) fn token_in(path: &Path) -> Result<SecretString, Failed> {
    let unusable = |error: &dyn std::fmt::Display| Failed::usage(format!("{}: {error}", path.display()));
    match read_token(path) {
        Ok(token) => Ok(token),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let token = random_token()?;
            let mut file = open_own(path, File::options().write(true).create_new(true))
                .map_err(|error| unusable(&error))?;
            let text = format!("{}\n", token.expose_secret());
            if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
                // An empty one, as a full disk leaves it, would be refused from then on.
                let _ = fs::remove_file(path);
                return Err(unusable(&error));
            }
            Ok(token)
        }
        Err(error) => Err(unusable(&error)),
    }
}
