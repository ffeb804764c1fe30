use std::{error::Error, fmt, sync::Arc};

use steadfast_spec::{BoxError, Planted, causes, one_line};
use tokio::time::Instant;

use crate::Cause;

/// Why there is no token to send a request with.
///
/// It is shared by everybody who waited for the same login, therefore it is cheap to clone.
#[derive(Clone)]
pub struct AuthError {
    kind: AuthErrorKind,
    ready_at: Option<Instant>,
    causes: Arc<[Cause]>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What an [`AuthError`] means for whoever has to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// No login is configured: nothing will ever fetch a token.
    NotConfigured,
    /// There has never been a token, and the configured login needs a person.
    NeverLoggedIn,
    /// The token's life is over, and the configured login needs a person or cannot be repeated.
    Expired,
    /// Logins have stopped until the configuration changes or somebody resets them: another attempt could lock the
    /// account.
    Latched,
    /// The service refuses the token or the code; another login would not help. See [`AuthError::causes`].
    Rejected,
    /// The login failed for a reason that passes, see [`AuthError::ready_at`].
    Unavailable,
    /// No token came before the request's `send_by` or deadline.
    TooLate,
    /// Too many requests wait for a token already.
    Overloaded,
}

impl AuthError {
    pub(crate) fn new(kind: AuthErrorKind) -> Self {
        let kind = if Planted::OneAuthError.is_on() { AuthErrorKind::Unavailable } else { kind };
        Self { kind, ready_at: None, causes: Arc::new([]), source: None }
    }

    pub(crate) fn with_source(self, source: impl Into<BoxError>) -> Self {
        Self { source: Some(Arc::from(source.into())), ..self }
    }

    pub(crate) fn with_ready_at(self, ready_at: Option<Instant>) -> Self {
        Self { ready_at, ..self }
    }

    pub(crate) fn with_causes(self, causes: Vec<Cause>) -> Self {
        Self { causes: causes.into(), ..self }
    }

    /// What the error means.
    #[must_use]
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }

    /// When the next login may start by itself; `None` if no time heals the error.
    #[must_use]
    pub fn ready_at(&self) -> Option<Instant> {
        self.ready_at
    }

    /// Why the service may have refused, the likeliest first. Its one text, `Unauthorized`, does not say (§7).
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            AuthErrorKind::NotConfigured => "no login is configured",
            AuthErrorKind::NeverLoggedIn => "nobody has logged in yet",
            AuthErrorKind::Expired => "access token expired and no login can renew it by itself",
            AuthErrorKind::Latched => "logins are latched until the configuration changes or they are reset",
            AuthErrorKind::Rejected => "service refuses the credentials",
            AuthErrorKind::Unavailable => "login failed for now",
            AuthErrorKind::TooLate => "no access token came in time for the request",
            AuthErrorKind::Overloaded => "too many requests wait for an access token",
        })
    }
}

/// Reads like `Display`, with all that is behind it, because `main` shows an error by it.
impl fmt::Debug for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(causes(self)))?;
        for (number, cause) in self.causes.iter().enumerate() {
            write!(f, "{}{cause}", if number == 0 { "; likely: " } else { "; or: " })?;
        }
        Ok(())
    }
}

impl Error for AuthError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// On a response of 401 that is handed to the caller: why no newer token could be had.
///
/// It stands in the response's extensions, beside the untouched answer.
#[derive(Clone, Debug)]
pub struct Unrenewed(pub AuthError);

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::{LoginFailure, StoreError, UnexpectedStatus};

    #[test]
    fn c06_debug_reads_like_display_with_all_causes() {
        let denied = LoginFailure::Denied(UnexpectedStatus(StatusCode::FORBIDDEN).into());
        let error = AuthError::new(AuthErrorKind::Unavailable).with_source(denied);
        assert_eq!(
            format!("{error:?}"),
            "login failed for now: login denied by the gateway: token endpoint answered 403"
        );
        let refused =
            AuthError::new(AuthErrorKind::Rejected).with_causes(vec![Cause::Ended, Cause::AddressChanged]);
        let line = format!("{refused:?}");
        assert!(line.starts_with("service refuses the credentials; likely: the session was ended"), "{line}");
        assert!(line.contains("; or: this machine's address has changed"), "{line}");
        let store = StoreError::io("auth.json", std::io::Error::other("no space"));
        assert_eq!(
            format!("{:?}", LoginFailure::Store(store)),
            "login not sent because it cannot be written down: auth.json cannot be used: no space"
        );
        assert_eq!(format!("{:?}", crate::RefusedHeader::NoToken), "no usable access token");
    }
}
