use std::{error::Error, fmt, sync::Arc};

use steadfast_call::{BoxError, causes, one_line};
use tokio::time::Instant;

use crate::cause::Cause;

/// The reason why no token is available for a request.
///
/// It is cheap to clone, because all requests that waited for the same login get it.
#[derive(Clone)]
pub struct AuthError {
    kind: AuthErrorKind,
    ready_at: Option<Instant>,
    causes: Arc<[Cause]>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kind of an [`AuthError`], by what can be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// No login is configured, so no token will ever be fetched.
    NotConfigured,
    /// There has never been a token, and the configured login needs a person.
    NeverLoggedIn,
    /// The token has expired, and the configured login needs a person or cannot be repeated.
    Expired,
    /// Logins have stopped until the configuration changes or a person resets them: another attempt could lock the
    /// account.
    Latched,
    /// The service refuses the token or the code; another login would not help. See [`AuthError::causes`].
    Rejected,
    /// The login failed for a reason that passes. See [`AuthError::ready_at`].
    Unavailable,
    /// No token came before the request's `send_by` or deadline.
    TooLate,
    /// Too many requests wait for a token already.
    Overloaded,
}

impl AuthError {
    pub(crate) fn new(kind: AuthErrorKind) -> Self {
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

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> AuthErrorKind {
        self.kind
    }

    /// Returns when the next login may start by itself; `None` if waiting does not help.
    #[must_use]
    pub fn ready_at(&self) -> Option<Instant> {
        self.ready_at
    }

    /// Returns the possible reasons for the refusal, likeliest first. The service's one text, `Unauthorized`, does not
    /// tell (§7).
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
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

/// Prints the `Display` text with all sources, because `main` shows an error through `Debug`.
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

/// Marks a 401 that is returned to the caller: says why no newer token was available.
///
/// It is in the response's extensions; the answer itself is unchanged.
#[derive(Clone, Debug)]
pub struct Unrenewed(pub AuthError);

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::{
        login::{LoginFailure, UnexpectedStatus},
        store::StoreError,
    };

    #[test]
    fn c06_debug_reads_like_display_with_all_causes() {
        let denied = LoginFailure::Denied(UnexpectedStatus(StatusCode::FORBIDDEN).into());
        let error = AuthError::new(AuthErrorKind::Unavailable).with_source(denied);
        assert_eq!(
            format!("{error:?}"),
            "login failed for now: login denied by the gateway: token endpoint answered 403"
        );
        assert_eq!(error.to_string(), format!("{error:?}"));
        let refused =
            AuthError::new(AuthErrorKind::Rejected).with_causes(vec![Cause::Ended, Cause::AddressChanged]);
        let line = format!("{refused:?}");
        assert!(line.starts_with("service refuses the credentials; likely: the session was ended"), "{line}");
        assert!(line.contains("; or: this machine's address has changed"), "{line}");
        let store = StoreError::io("auth.json", std::io::Error::other("no space"));
        assert_eq!(store.to_string(), "auth.json cannot be used: no space");
        let unsent = LoginFailure::Store(store);
        assert_eq!(
            format!("{unsent:?}"),
            "login not sent because it cannot be written down: auth.json cannot be used: no space"
        );
        assert_eq!(unsent.to_string(), format!("{unsent:?}"));
        assert_eq!(format!("{:?}", crate::RefusedHeader::NoToken), "no usable access token");
    }
}
