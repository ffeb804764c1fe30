use std::{error::Error, fmt, time::Duration};

use http::StatusCode;
use steadfast_call::{BoxError, causes, one_line};

use crate::store::StoreError;

/// How a login attempt failed, which decides the next step.
#[non_exhaustive]
pub enum LoginFailure {
    /// 401: password, one-time code, key or address is wrong, and the service does not say which. Spends budget.
    Refused,
    /// 401 to the exchange of an authorization code (§4.2): the code was used or has expired, or the client secret or
    /// redirect address is wrong; the service does not say which. The next login needs a new code. Spends nothing.
    CodeRefused,
    /// 400, 415: the application refused the request itself, and would refuse the same again.
    Misconfigured(BoxError),
    /// 403, 404, 405: the gateway refused the request, with or without a look at the credentials. It ends when
    /// addresses are registered, sessions end or a deployment is over. Counts like [`Unknown`](Self::Unknown).
    Denied(BoxError),
    /// 429: the service did not look at the credentials.
    RateLimited {
        /// The wait that the service asked for.
        retry_after: Option<Duration>,
    },
    /// The request did not leave this machine.
    NotSent(BoxError),
    /// The answer is lost, cut, or of a kind that proves nothing: the code is spent, and a session may be open. After a
    /// refusal it spends budget, because it may have been the next wrong login. Otherwise only the wait for the next
    /// login grows.
    Unknown(BoxError),
    /// No one-time code was available.
    NoCode(BoxError),
    /// The attempt could not be written down, so it was not sent.
    Store(StoreError),
}

impl LoginFailure {
    /// True if the service answered the login with more than a 429, or its end is unknown.
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(self, Self::RateLimited { .. } | Self::NotSent(_) | Self::NoCode(_) | Self::Store(_))
    }

    /// Returns the failure's name for logs and metrics.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::CodeRefused => "code_refused",
            Self::Misconfigured(_) => "misconfigured",
            Self::RateLimited { .. } => "rate_limited",
            Self::Denied(_) => "denied",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::NoCode(_) => "no_code",
            Self::Store(_) => "store",
        }
    }
}

impl fmt::Display for LoginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        f.write_str(match self {
            Self::Refused => "login refused with 401",
            Self::CodeRefused => {
                "code exchange refused with 401: the client secret or the redirect address is wrong, or the code was used or is \
                 too old"
            }
            Self::Misconfigured(_) => "login request refused as wrong",
            Self::Denied(_) => "login denied by the gateway",
            Self::RateLimited { .. } => "login refused with 429",
            Self::NotSent(_) => "login not sent",
            Self::Unknown(_) => "end of the login unknown",
            Self::NoCode(_) => "no one-time code",
            Self::Store(_) => "login not sent because it cannot be written down",
        })
    }
}

steadfast_call::debug_in_one_line!(LoginFailure);

impl Error for LoginFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(source) => Some(source),
            Self::Misconfigured(source)
            | Self::Denied(source)
            | Self::NotSent(source)
            | Self::Unknown(source)
            | Self::NoCode(source) => Some(&**source),
            Self::Refused | Self::CodeRefused | Self::RateLimited { .. } => None,
        }
    }
}

/// An unexpected status of a token endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UnexpectedStatus(pub StatusCode);

impl fmt::Display for UnexpectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token endpoint answered {}", self.0.as_u16())
    }
}

steadfast_call::debug_in_one_line!(UnexpectedStatus);

impl Error for UnexpectedStatus {}
