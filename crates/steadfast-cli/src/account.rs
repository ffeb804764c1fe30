//! The account, its token store and its way to log in, from options and environment.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use http::{Request, Response, header};
use secrecy::{ExposeSecret, SecretString};
use steadfast::{
    Access, BaseUrl, BoxError, InvalidAccess, Paths, TotpCredentials,
    auth::{
        ApiKey, AuthHeaderLayer, FileStore, Identity, StoreError, Stored, TokenPhase, TokenSource, TokenStore,
    },
    spec::Endpoint,
};
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    clock::wall,
    exit::{Failed, print_note},
    secret::{find, find_or_ask, variable_of},
    summary::refusal,
};

/// The help text about secrets, for every verb with an account.
pub(crate) const SECRETS: &str = "\
Secrets come from the environment, from systemd's credentials (`api-key`) or from the config file, never from options: \
STEADFAST_API_KEY; STEADFAST_ACCESS_TOKEN, a token that is there \
already; STEADFAST_CLIENT_ID, STEADFAST_PASSWORD and \
STEADFAST_TOTP_SECRET for logins with an authenticator's secret; STEADFAST_CLIENT_SECRET and STEADFAST_REDIRECT_URI \
for logins in a browser. NAME_FILE names a file that holds the value, NAME_COMMAND a command that prints it; what is \
still missing is asked for at a terminal. Without a token and an authenticator's secret, the token that `steadfast login` \
keeps is used.";

/// Advice for a missing token.
pub(crate) const LOG_IN: &str = "`steadfast login` fetches one for all verbs, or give STEADFAST_ACCESS_TOKEN, or STEADFAST_CLIENT_ID, \
STEADFAST_PASSWORD and STEADFAST_TOTP_SECRET";

/// Which account.
#[derive(clap::Args)]
pub(crate) struct Whose {
    /// The service's base address, which ends in /v2.
    #[arg(long, value_name = "URL", env = "STEADFAST_BASE_URL", hide_env_values = true, value_parser = base_url)]
    pub(crate) base_url: BaseUrl,
    /// The file that keeps the token; one for each account below the user's state directory if absent.
    #[arg(long, value_name = "FILE", env = "STEADFAST_STORE", hide_env_values = true)]
    pub(crate) store: Option<PathBuf>,
}

/// Reads a base address. For an empty one, the error says where it may come from.
pub(crate) fn base_url(text: &str) -> Result<BaseUrl, String> {
    if text.is_empty() {
        return Err("it is empty, and --base-url or STEADFAST_BASE_URL must name the service".to_owned());
    }
    let base = text.parse().map_err(|error: steadfast::spec::InvalidBaseUrl| error.to_string())?;
    refuse_clear_text(&base).map(|()| base).map_err(str::to_owned)
}

/// Fails for an address at which others could read the token on its way.
fn refuse_clear_text(base: &BaseUrl) -> Result<(), &'static str> {
    if base.is_clear_text() && !base.is_loopback() {
        return Err("base url is clear-text http to another machine");
    }
    Ok(())
}

/// An account of the service.
pub(crate) struct Account {
    pub(crate) base: BaseUrl,
    pub(crate) api_key: ApiKey,
    key: SecretString,
    pub(crate) client_id: Option<SecretString>,
    store: Option<PathBuf>,
}

impl Account {
    pub(crate) async fn read(args: Whose) -> Result<Self, Failed> {
        let Whose { base_url: base, store } = args;
        refuse_clear_text(&base).map_err(Failed::usage)?;
        let key = find_or_ask("API_KEY", "API key").await?;
        let api_key = ApiKey::new(key.clone())
            .map_err(|error| Failed::usage(format_args!("STEADFAST_API_KEY: {error}")))?;
        Ok(Self { base, api_key, key, client_id: find("CLIENT_ID").await?, store })
    }

    /// Returns how a client of this account gets its tokens, the same for every verb: the given token, else logins with
    /// an authenticator's secret that share the store, else the token that `steadfast login` keeps there.
    pub(crate) async fn access(&self) -> Result<Access, Failed> {
        self.credentials().await?.access(self)
    }

    /// Reads all that [`access`](Self::access) needs.
    pub(crate) async fn credentials(&self) -> Result<Credentials, Failed> {
        if let Some(token) = find("ACCESS_TOKEN").await? {
            return Ok(Credentials::Token(token));
        }
        if let Some(totp_secret) = find("TOTP_SECRET").await? {
            let client_id = match &self.client_id {
                Some(client_id) => client_id.clone(),
                None => find_or_ask("CLIENT_ID", "client id").await?,
            };
            let password = find_or_ask("PASSWORD", "password").await?;
            // A damaged store blocks every login. Report it before anything waits for a token.
            let identity = self.identity_of(client_id.expose_secret());
            self.store_of(&identity)?.summary_of(&identity).await.map_err(store_failed)?;
            return Ok(Credentials::Totp { client_id, password, totp_secret });
        }
        self.expires().await?;
        Ok(Credentials::Stored)
    }

    /// Returns when the stored token ends, if that is known.
    ///
    /// Fails if there is none, or if it has ended.
    pub(crate) async fn expires(&self) -> Result<Option<SystemTime>, Failed> {
        let store = self.store()?;
        let summary = store.summary().await.map_err(store_failed)?;
        let issued = summary.as_ref().and_then(|summary| summary.issued_at);
        let expires = summary.as_ref().and_then(|summary| summary.expires_at);
        let missing = match (issued, expires) {
            (None, _) => "there is no token of this account".to_owned(),
            (Some(_), Some(end)) if end <= wall() => "the token of this account has expired".to_owned(),
            // No client takes it over any more.
            _ => match summary.as_ref().filter(|summary| summary.is_refused) {
                Some(summary) => {
                    format!("the service refuses the token of this account ({})", refusal(summary))
                }
                None => return Ok(expires),
            },
        };
        // A login with a user keeps its token in the user's own store.
        let unset = match (&self.client_id, &self.store) {
            (None, None) => "STEADFAST_CLIENT_ID is not set: give it if the login had it; ",
            _ => "",
        };
        Err(Failed::login_needed(format_args!("{missing} in {}: {unset}{LOG_IN}", store.path().display())))
    }

    /// Returns the stored token.
    pub(crate) async fn kept_token(&self) -> Result<SecretString, Failed> {
        let login = Stored::new(self.identity());
        let source = TokenSource::builder(self.api_key.clone(), login).store(self.store()?).build();
        source.restore().await.map_err(store_failed)?;
        // Only a header ever holds it, so it is read from a request that is not sent.
        let echo = service_fn(|request: Request<()>| async move {
            Ok::<_, BoxError>(Response::new(request.headers().get(header::AUTHORIZATION).cloned()))
        });
        let orders = Paths::default().of(Endpoint::Orders).unwrap_or_default().to_owned();
        let uri = self.base.join(&orders).map_err(Failed::usage)?;
        let request = Request::get(uri).body(()).map_err(Failed::error)?;
        let answer = AuthHeaderLayer::new(source).only_to(&self.base).layer(echo).oneshot(request).await;
        let answer = answer.map_err(|error| Failed::login_needed(format_args!("{error}: {LOG_IN}")))?;
        let value = answer.into_body();
        let header = value
            .as_ref()
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.strip_prefix("Bearer "));
        let token = header.and_then(|text| text.strip_prefix(self.key.expose_secret())?.strip_prefix(':'));
        let token = token.ok_or_else(|| Failed::login_needed(format_args!("there is no token: {LOG_IN}")))?;
        Ok(token.into())
    }

    /// Returns the account and credentials that the tokens belong to.
    pub(crate) fn identity(&self) -> Identity {
        self.identity_of(self.user())
    }

    fn identity_of(&self, user: &str) -> Identity {
        Identity::new(&self.base.to_string(), &self.api_key, user)
    }

    /// Returns the user, if known.
    pub(crate) fn user(&self) -> &str {
        self.client_id.as_ref().map_or("", |id| id.expose_secret())
    }

    /// Returns the file of the account's token.
    pub(crate) fn path(&self) -> Result<PathBuf, Failed> {
        self.path_of(&self.identity())
    }

    fn path_of(&self, identity: &Identity) -> Result<PathBuf, Failed> {
        if let Some(path) = &self.store {
            return Ok(path.clone());
        }
        let directory = state_folder()?
            .ok_or_else(|| Failed::usage("neither --store nor HOME says where tokens are kept"))?;
        let file = |label: String| directory.join(format!("auth-{label}.json"));
        let path = file(identity.label());
        // A store that version 0.1 named after this spelling is renamed, unless the one for all spellings exists.
        if let Some(older) = identity.older_label().map(file)
            && older.exists()
            && !path.exists()
            && let Err(error) = fs::rename(&older, &path)
            && !path.exists()
        {
            return Err(Failed::error(format_args!("{} cannot be renamed: {error}", older.display())));
        }
        Ok(path)
    }

    /// Returns the folder for what all programs of this user have to know of the account, whatever their store.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failed> {
        match state_folder()? {
            Some(folder) => Ok(folder),
            None => Ok(self.path()?.parent().map(Path::to_path_buf).unwrap_or_default()),
        }
    }

    /// Opens the account's store.
    pub(crate) fn store(&self) -> Result<FileStore, Failed> {
        self.store_of(&self.identity())
    }

    fn store_of(&self, identity: &Identity) -> Result<FileStore, Failed> {
        FileStore::open(self.path_of(identity)?).map_err(store_failed)
    }
}

/// A way to get tokens. Several clients may go it.
pub(crate) enum Credentials {
    Token(SecretString),
    Totp {
        client_id: SecretString,
        password: SecretString,
        totp_secret: SecretString,
    },
    /// A person logs in.
    Stored,
}

impl Credentials {
    /// Returns what a client of the account gets its tokens by.
    pub(crate) fn access(&self, account: &Account) -> Result<Access, Failed> {
        let key = account.key.clone();
        let access = match self {
            Self::Token(token) => Access::token(key, token.clone()),
            Self::Totp { client_id, password, totp_secret } => Access::totp(TotpCredentials {
                api_key: key,
                client_id: client_id.clone(),
                password: password.clone(),
                totp_secret: totp_secret.clone(),
            }),
            Self::Stored => Access::stored(key, account.user().to_owned(), account.store()?),
        };
        let access = access.map_err(|error: InvalidAccess| {
            let name = error.value().to_uppercase();
            Failed::usage(format_args!("STEADFAST_{name}: {error}"))
        })?;
        Ok(match self {
            // Logins of all verbs share it.
            Self::Totp { client_id, .. } => {
                access.store(account.store_of(&account.identity_of(client_id.expose_secret()))?)
            }
            _ => access,
        })
    }
}

/// Returns the folder of this command below the user's state directory; `None` if the environment does not name it.
fn state_folder() -> Result<Option<PathBuf>, Failed> {
    let state = match (variable_of("XDG_STATE_HOME")?, variable_of("HOME")?) {
        (Some(state), _) => PathBuf::from(state),
        (None, Some(home)) => PathBuf::from(home).join(".local/state"),
        (None, None) => return Ok(None),
    };
    Ok(Some(state.join("steadfast")))
}

/// Writes into the store that the service refuses the held token for good, so that every verb knows it. Does nothing for
/// a token that is not refused.
pub(crate) async fn keep_refusal(tokens: &TokenSource) {
    if tokens.status().phase != TokenPhase::Suspect {
        return;
    }
    let told = match tokio::time::timeout(AT_ONCE, tokens.note_refused()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "another program holds it".to_owned(),
    };
    print_note(format_args!("the store does not know that the service refuses the token: {told}"));
}

/// Reports a store that cannot be used, with the file system's error and what to do.
pub(crate) fn store_failed(error: StoreError) -> Failed {
    match &error {
        StoreError::OpenToOthers { place, .. } => {
            Failed::error(format_args!("{error}: `chmod go-rwx {place}`"))
        }
        StoreError::NotAFile { .. } => {
            Failed::error(format_args!("{error}; name the file itself by --store"))
        }
        StoreError::OtherAccount { .. } => Failed::error(format_args!(
            "{error}: check STEADFAST_BASE_URL, STEADFAST_API_KEY and the client id; if they are right and its token is not needed \
             any more, `steadfast auth logout` gives the store to whoever logs in next; or name another file by --store"
        )),
        StoreError::UnknownVersion { .. } => {
            Failed::error(format_args!("{error}; use the newer program, or name another file by --store"))
        }
        StoreError::Garbled { .. } => Failed::error(format_args!(
            "{error}; no login is sent, so that the account is not locked: once you have made sure that the \
             credentials are right, `steadfast auth reset` begins a new one, without a token"
        )),
        _ => Failed::error(error),
    }
}

/// How long a verb that has done its work waits for the store.
const AT_ONCE: Duration = Duration::from_secs(5);

/// How long a wait for the lease may last before a note explains it.
const SOON: Duration = Duration::from_secs(1);

/// Prints a note if another program holds the lease for logins.
pub(crate) async fn note_if_held(store: &FileStore) {
    if tokio::time::timeout(SOON, store.lease()).await.is_err() {
        print_note(format_args!(
            "steadfast: another program is logging in to this account and holds {}.lock; waiting for it",
            store.path().display()
        ));
    }
}
