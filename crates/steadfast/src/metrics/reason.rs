use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicU8, Ordering},
};

use http::StatusCode;
use metrics::Key;
use steadfast_call::{BoxError, Failure, Fate};

use super::{
    catalog,
    keys::{count, key},
};

/// How a send ended that another send of the same call follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    BadRequest = 1,
    Unauthorized,
    TooManyRequests,
    BadGateway,
    Unavailable,
    GatewayTimeout,
    ServerError,
    NotSent,
    NoAnswer,
    Other,
}

impl Reason {
    pub(super) const ALL: [Self; 10] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::TooManyRequests,
        Self::BadGateway,
        Self::Unavailable,
        Self::GatewayTimeout,
        Self::ServerError,
        Self::NotSent,
        Self::NoAnswer,
        Self::Other,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unauthorized => "unauthorized",
            Self::TooManyRequests => "too_many_requests",
            Self::BadGateway => "bad_gateway",
            Self::Unavailable => "unavailable",
            Self::GatewayTimeout => "gateway_timeout",
            Self::ServerError => "server_error",
            Self::NotSent => "not_sent",
            Self::NoAnswer => "no_answer",
            Self::Other => "other",
        }
    }

    pub(super) fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            400 => Self::BadRequest,
            401 => Self::Unauthorized,
            429 => Self::TooManyRequests,
            502 => Self::BadGateway,
            503 => Self::Unavailable,
            504 => Self::GatewayTimeout,
            500..=599 => Self::ServerError,
            _ => Self::Other,
        }
    }

    pub(super) fn of_error(error: &BoxError) -> Self {
        match Failure::find(&**error).map(Failure::fate) {
            Some(Fate::NeverLeft) => Self::NotSent,
            _ => Self::NoAnswer,
        }
    }
}

/// How the last send of a call ended (zero before the first end), and whether the next one waits for its permits.
///
/// It travels in the extensions of the call's request, so that repeats are counted whichever layer makes them.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier(Arc<AtomicU8>);

impl Earlier {
    const WAITS: u8 = 1 << 7;

    /// Notes that a send begins to wait for its permits.
    pub(super) fn wait(&self) {
        self.0.fetch_or(Self::WAITS, Ordering::Relaxed);
    }

    /// Notes that a send has its permits. Returns true if it was known to wait.
    pub(super) fn admit(&self) -> bool {
        self.0.fetch_and(!Self::WAITS, Ordering::Relaxed) & Self::WAITS != 0
    }

    /// Counts a send that follows another one.
    pub(super) fn begin(&self) {
        static KEYS: LazyLock<[Key; Reason::ALL.len()]> =
            LazyLock::new(|| Reason::ALL.map(|reason| key(catalog::RETRIES, [("reason", reason.as_str())])));
        let earlier = usize::from(self.0.load(Ordering::Relaxed) & !Self::WAITS);
        if let Some(key) = earlier.checked_sub(1).and_then(|at| KEYS.get(at)) {
            count(key);
        }
    }

    pub(super) fn end(&self, reason: Reason) {
        self.0.store(reason as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_place() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at + 1);
        }
    }
}
