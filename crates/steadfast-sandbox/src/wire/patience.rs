use std::time::Duration;

/// How long a server that does not answer keeps the connection; no client waits that long.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(600);

/// How long a client may take to send a request's body.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send a request's head, or stay idle.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
