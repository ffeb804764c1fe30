use std::{sync::Arc, time::SystemTime};

/// A login that waits before its next attempt, as reported to
/// [`on_login_wait`](crate::TokenSourceBuilder::on_login_wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginWait {
    /// When the attempt may leave, by this machine's clock.
    pub until: SystemTime,
    /// The name of the failed attempt before it ([`LoginFailure::as_str`](crate::LoginFailure::as_str)); `None` for the
    /// first attempt, which waits for the next one-time code.
    pub after: Option<&'static str>,
}

pub(crate) type OnLoginWait = Arc<dyn Fn(LoginWait) + Send + Sync>;
