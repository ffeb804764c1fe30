use http::StatusCode;
use steadfast_call::{BoxError, Failure, Fate};

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
