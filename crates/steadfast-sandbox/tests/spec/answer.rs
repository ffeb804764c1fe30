//! An answer of the gateway, and the rules of §1 and §7 for its envelope.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_TYPE};
use serde_json::Value;

pub(crate) const BAD_REQUEST: &str = "Bad request";
pub(crate) const INVALID_INPUT: &str =
    "Input validation failed. Kindly check your input contains required fields for the request";
pub(crate) const INTERNAL_ERROR_OCCURRED: &str = "Internal Error occurred. Kindly try again.";
pub(crate) const UNAUTHORIZED: &str = "Unauthorized";
pub(crate) const FORBIDDEN: &str = "Forbidden";
pub(crate) const NOT_FOUND: &str = "Resource not found";
pub(crate) const METHOD_NOT_ALLOWED: &str = "Method not allowed";
pub(crate) const TOO_MANY_REQUESTS: &str = "Too many requests";
pub(crate) const INTERNAL_SERVER_ERROR: &str = "Internal server error";
pub(crate) const BAD_GATEWAY: &str = "Bad gateway";
pub(crate) const SERVICE_UNAVAILABLE: &str = "Service unavailable";
pub(crate) const GATEWAY_TIMED_OUT: &str = "Gateway timedout";

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) request: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let content_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_json = content_type.is_some_and(|value| value.starts_with("application/json"));
        assert!(is_json, "content type {content_type:?} of {self}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Returns the body, which must be an envelope: `s` and `d` on success, else `s` and `msg`, and nothing
    /// more.
    #[track_caller]
    pub(crate) fn envelope(&self) -> Value {
        let json = self.json();
        let fields = json.as_object().unwrap_or_else(|| panic!("not an object: {self}"));
        let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        match json["s"].as_str() {
            Some("ok") => {
                assert_eq!(names, ["d", "s"], "{self}");
                assert!(self.status.is_success(), "{self}");
            }
            Some("no-data") => {
                assert_eq!(names, ["msg", "s"], "{self}");
                assert_eq!(json["msg"], "no-data", "{self}");
            }
            Some("error") => {
                assert_eq!(names, ["msg", "s"], "{self}");
                assert!(json["msg"].as_str().is_some_and(|msg| !msg.is_empty()), "{self}");
                assert!(self.status.is_client_error() || self.status.is_server_error(), "{self}");
            }
            _ => panic!("`s` is none of ok, no-data and error: {self}"),
        }
        json
    }

    /// Returns the payload `d` of a success.
    #[track_caller]
    pub(crate) fn payload(&self) -> Value {
        let mut json = self.envelope();
        assert_eq!(json["s"], "ok", "{self}");
        json["d"].take()
    }

    /// Asserts an error envelope with this status and exactly this text.
    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, msg: &str) {
        let json = self.envelope();
        assert_eq!((self.status.as_u16(), json["msg"].as_str()), (status, Some(msg)), "{self}");
    }

    /// Asserts an error envelope whose text the specification leaves open.
    #[track_caller]
    pub(crate) fn assert_refused_with(&self, statuses: &[u16]) {
        assert_eq!(self.envelope()["s"], "error", "{self}");
        assert!(statuses.contains(&self.status.as_u16()), "expected one of {statuses:?}: {self}");
    }

    /// Returns true unless a rate limit refused the request, whatever the answer is otherwise.
    #[track_caller]
    pub(crate) fn is_admitted(&self) -> bool {
        let reached = !matches!(self.status.as_u16(), 404 | 405) && !self.status.is_server_error();
        assert!(reached, "neither admitted nor refused: {self}");
        self.status != StatusCode::TOO_MANY_REQUESTS
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        write!(f, "{} answered {} {body}", self.request, self.status)
    }
}
