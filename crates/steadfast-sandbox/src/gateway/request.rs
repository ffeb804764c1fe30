use std::net::IpAddr;

use bytes::Bytes;
use http::Method;

/// A request as the gateway's core sees it. It holds secrets, so it has no `Debug`.
#[derive(Clone)]
pub(crate) struct IncomingRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) content_type: Option<String>,
    /// The header's value; `None` also for one that is not text.
    pub(crate) authorization: Option<String>,
    /// True if no cache may answer: `Cache-Control: no-cache`.
    pub(crate) no_cache: bool,
    /// The test's name for the order's intent; only the ground truth contains it.
    pub(crate) intent: Option<String>,
    pub(crate) body: Result<Bytes, UnreadBody>,
    pub(crate) peer: IpAddr,
}

/// Why a request's body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreadBody {
    /// It exceeds the limit.
    TooLarge,
    /// The client went away or took too long, or its framing is broken.
    Broken,
}
