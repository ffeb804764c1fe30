mod answer;
mod listener;

use std::{error::Error, fmt, time::Duration};

use data_encoding::BASE64URL_NOPAD;
use http::Uri;
use secrecy::{ExposeSecret, SecretString};
use steadfast_call::BoxError;
use steadfast_spec::{BaseUrl, Form, InvalidBaseUrl};

use self::{answer::Answer, listener::Listener};
use super::{CodeSource, OneTimeCode};
use crate::secret::ApiKey;

/// How long a person may take by default.
const PATIENCE: Duration = Duration::from_secs(180);
/// How many wrong pastes are accepted: a person may paste a wrong text by mistake, but a program must stop.
const MOST_PASTED: usize = 3;
/// §4.1.
const AUTHORIZE: &str = "/api-gw/oauth/authorize";

/// Runs a login in a browser and returns the authorization code of its redirect (§4.1, §4.2). It is the source of
/// [`CodeExchange`](crate::CodeExchange).
///
/// 1. It makes a `state` of 256 random bits and shows the address that carries it.
/// 2. If the registered redirect leads to this machine (`http://127.0.0.1:PORT/PATH`), it listens on exactly that host,
///    port and path. A request with another state, without a code, or for something else (a forged link, a favicon, a
///    port scan) is turned away, and the login goes on. Of many silent connections the oldest are dropped. The page
///    says only that the code was received, because the exchange comes after it.
/// 3. Where it cannot listen, or in addition, the person may [`paste`](BrowserLogin::paste) the address that the
///    browser was sent to. An address with another state is turned away too; a bare code is accepted without a check.
/// 4. After three minutes it gives up.
///
/// The names of the address's parameters are "not shown" (§4.2). It uses those of RFC 6749: `response_type`,
/// `client_id`, `redirect_uri`, `state`, and those added by [`parameter`](BrowserLogin::parameter).
///
/// # Cancellation
///
/// If dropped, it stops listening.
pub struct BrowserLogin<C = NoPaste> {
    authorize: Uri,
    api_key: ApiKey,
    redirect_uri: String,
    path: String,
    listens_on: Option<(String, u16)>,
    parameters: Vec<(String, String)>,
    patience: Duration,
    show: Box<dyn Fn(&str) + Send + Sync>,
    paste: Option<C>,
}

/// The absence of a paste source.
#[derive(Clone, Copy, Debug)]
pub enum NoPaste {}

impl CodeSource for NoPaste {
    async fn code(&self) -> Result<OneTimeCode, BoxError> {
        match *self {}
    }
}

impl BrowserLogin {
    /// Logs in at `base` and is redirected to `redirect_uri`, the one registered with the app. `show` presents the
    /// address to a person. The address holds the API key, so show it on a screen and keep it out of logs and command
    /// arguments.
    ///
    /// # Errors
    ///
    /// [`InvalidRedirect`] if `redirect_uri` is not an address or has an impossible port, [`InvalidBaseUrl`] if the
    /// path cannot follow `base`.
    pub fn new(
        base: &BaseUrl,
        api_key: ApiKey,
        redirect_uri: impl Into<String>,
        show: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, InvalidRedirect> {
        let redirect_uri = redirect_uri.into();
        let uri: Uri = redirect_uri.parse().map_err(|_| InvalidRedirect::NotAnAddress)?;
        let host = uri.host().filter(|_| uri.scheme().is_some()).ok_or(InvalidRedirect::NotAnAddress)?;
        let port = port_of(&uri)?;
        let here = uri.scheme_str() == Some("http") && crate::destination::is_loopback(host);
        let listens_on = here.then(|| (host.to_owned(), port.unwrap_or(80)));
        Ok(Self {
            authorize: base.join(AUTHORIZE).map_err(InvalidRedirect::Base)?,
            api_key,
            path: uri.path().to_owned(),
            listens_on,
            parameters: Vec::new(),
            patience: PATIENCE,
            show: Box::new(show),
            paste: None,
            redirect_uri,
        })
    }
}

impl<C> BrowserLogin<C> {
    /// Accepts addresses or codes that a person pastes, in addition to the redirect.
    #[must_use]
    pub fn paste<P: CodeSource>(self, source: P) -> BrowserLogin<P> {
        BrowserLogin {
            authorize: self.authorize,
            api_key: self.api_key,
            redirect_uri: self.redirect_uri,
            path: self.path,
            listens_on: self.listens_on,
            parameters: self.parameters,
            patience: self.patience,
            show: self.show,
            paste: Some(source),
        }
    }

    /// Sets how long a person may take; the default is three minutes.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Adds a parameter to the address.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    fn address(&self, state: &str) -> String {
        let mut query = Form::new()
            .with("response_type", "code")
            .with("client_id", self.api_key.expose())
            .with("redirect_uri", self.redirect_uri.as_str())
            .with("state", state);
        for (name, value) in &self.parameters {
            query = query.with(name.clone(), value.as_str());
        }
        format!("{}?{}", self.authorize, query.encode())
    }

    async fn listen(&self) -> Option<Result<Listener, BoxError>> {
        let (host, port) = self.listens_on.as_ref()?;
        Some(Listener::bind(host, *port).await)
    }
}

impl<C: CodeSource> BrowserLogin<C> {
    async fn pasted(&self, state: &str) -> Result<OneTimeCode, BoxError> {
        let Some(paste) = &self.paste else { return std::future::pending().await };
        let mut wrong = None;
        for _ in 0..MOST_PASTED {
            let text = paste.code().await?;
            match Answer::of_pasted(text.expose(), state) {
                Answer::Code(code) => return Ok(code),
                Answer::Refused(refused) => return Err(refused.into()),
                Answer::Foreign(foreign) => {
                    tracing::warn!(foreign, "what was pasted does not belong to this login");
                    wrong = Some(foreign);
                }
            }
        }
        Err(wrong.unwrap_or_default().into())
    }
}

impl<C: CodeSource> CodeSource for BrowserLogin<C> {
    async fn code(&self) -> Result<OneTimeCode, BoxError> {
        let state = fresh_state()?;
        let listener = match (self.listen().await, self.paste.is_some()) {
            (Some(Ok(listener)), _) => Some(listener),
            (Some(Err(error)), true) => {
                tracing::warn!(error = %error, "cannot listen for the redirect: its address has to be pasted");
                None
            }
            (Some(Err(error)), false) => return Err(error),
            (None, true) => None,
            (None, false) => return Err(InvalidRedirect::Elsewhere.into()),
        };
        (self.show)(&self.address(state.expose_secret()));
        let redirected = async {
            match listener {
                Some(listener) => listener.answer(&self.path, state.expose_secret()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            code = redirected => code.map_err(Into::into),
            code = self.pasted(state.expose_secret()) => code,
            () = tokio::time::sleep(self.patience) => Err("nobody logged in in time".into()),
        }
    }
}

/// Returns the port that an address names. The parser ignores a port that is out of range, so the scheme's default
/// would be used instead; port 0 cannot be connected to. Both are errors here.
fn port_of(uri: &Uri) -> Result<Option<u16>, InvalidRedirect> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let after_host = authority.rsplit_once(']').map_or(authority, |(_, after)| after);
    let Some((_, port)) = after_host.rsplit_once(':') else { return Ok(None) };
    match port.parse() {
        Ok(0) | Err(_) => Err(InvalidRedirect::Port(port.to_owned())),
        Ok(port) => Ok(Some(port)),
    }
}

/// Returns 256 random bits as text.
fn fresh_state() -> Result<SecretString, BoxError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(|_| "no randomness for the login's state")?;
    Ok(BASE64URL_NOPAD.encode(&bits).into())
}

impl<C> fmt::Debug for BrowserLogin<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserLogin")
            .field("listens_on", &self.listens_on)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// A redirect address with which no login can end.
#[derive(Clone)]
#[non_exhaustive]
pub enum InvalidRedirect {
    /// It is no address with a scheme and a host.
    NotAnAddress,
    /// It names an impossible port: 0, above 65535, or an empty one.
    Port(String),
    /// It does not lead to this machine, and there is no paste source.
    Elsewhere,
    /// The service's base address cannot hold the path.
    Base(InvalidBaseUrl),
}

impl fmt::Display for InvalidRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAddress => f.write_str("redirect_uri is no address with a scheme and a host"),
            Self::Port(port) => {
                write!(f, "redirect_uri names port {port:?}, and a port is a number from 1 to 65535")
            }
            Self::Elsewhere => f.write_str("redirect_uri leads to another machine"),
            Self::Base(error) => error.fmt(f),
        }
    }
}

steadfast_call::debug_in_one_line!(InvalidRedirect);

impl Error for InvalidRedirect {}

/// The person, or the service, refused the login in the browser.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRefused {
    pub(super) reason: String,
}

impl fmt::Display for LoginRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "login refused in the browser: {}", self.reason)
    }
}

steadfast_call::debug_in_one_line!(LoginRefused);

impl Error for LoginRefused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_login_has_a_state_of_256_bits_of_its_own() {
        let (one, two) = (fresh_state().unwrap(), fresh_state().unwrap());
        assert_ne!(one.expose_secret(), two.expose_secret());
        assert_eq!(BASE64URL_NOPAD.decode(one.expose_secret().as_bytes()).unwrap().len(), 32);
    }

    #[test]
    fn it_listens_where_the_redirect_leads_to_this_machine() {
        let base = BaseUrl::new("https://api.example/v2").unwrap();
        let login = |uri: &str| BrowserLogin::new(&base, ApiKey::new("k").unwrap(), uri, |_| ());
        let on = |uri| login(uri).unwrap().listens_on;
        assert_eq!(on("http://127.0.0.1:8799/callback"), Some(("127.0.0.1".to_owned(), 8799)));
        assert_eq!(on("http://localhost/"), Some(("localhost".to_owned(), 80)));
        assert_eq!(on("https://127.0.0.1:8799/callback"), None, "it has no certificate");
        assert_eq!(on("http://trader.example/callback"), None);
        assert!(matches!(login("/callback"), Err(InvalidRedirect::NotAnAddress)));
        let address = login("http://localhost/cb").unwrap().parameter("scope", "general").address("S");
        assert_eq!(
            address,
            "https://api.example/v2/api-gw/oauth/authorize?response_type=code&client_id=k&\
             redirect_uri=http%3A%2F%2Flocalhost%2Fcb&state=S&scope=general"
        );
    }
}
