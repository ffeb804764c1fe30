//! A request on its way through the gateway.

use std::time::Duration;

use steadfast_spec::{Endpoint, Form, Zone};

use crate::gateway::{directory::UserIndex, quota::Key, request::IncomingRequest, session::Session};

/// The sender of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) user: UserIndex,
    /// Absent if the endpoint takes only an API key.
    pub(crate) session: Option<Session>,
}

/// The facts about a request from its send on.
pub(crate) struct Ticket {
    pub(super) attempt: u32,
    pub(super) key: String,
    pub(super) endpoint: Option<Endpoint>,
    /// How long it is on its way, and the fault that decided it.
    pub(crate) delay: Duration,
    pub(super) fault: Option<&'static str>,
}

/// A request on its way through the gateway.
pub(crate) struct Passage<'a> {
    pub(crate) now: Duration,
    pub(crate) incoming: &'a IncomingRequest,
    pub(crate) attempt: u32,
    pub(crate) key: String,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) query: Form,
    pub(crate) caller: Option<Caller>,
    pub(crate) zones: Vec<Zone>,
    pub(crate) accounted: Duration,
    pub(crate) refused_by: Option<Zone>,
    /// The keys for which the request counts after its answer.
    pub(super) uncounted: Vec<Key>,
    pub(crate) faults: Vec<&'static str>,
    /// How long the answer takes, if a script says so.
    pub(super) answer_after: Option<Duration>,
    /// True if the gateway's clock for authenticator codes is wrong.
    pub(crate) totp_skewed: bool,
}
