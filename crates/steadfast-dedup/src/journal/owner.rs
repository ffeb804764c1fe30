use std::{error::Error, fmt, sync::Arc, time::Duration};

/// This process may not send orders now: another one owns the account's orders, or may.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotOwner {
    /// The name of the process that owns them, as far as it is known.
    pub owner: Option<Arc<str>>,
    /// How long it takes at least until this process could own them.
    pub try_in: Duration,
}

impl NotOwner {
    /// Returns one that names the owner.
    #[must_use]
    pub fn new(owner: Option<Arc<str>>, try_in: Duration) -> Self {
        Self { owner, try_in }
    }
}

impl fmt::Display for NotOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "process {owner} owns the orders")?,
            None => f.write_str("no process is known to own the orders")?,
        }
        write!(f, ", try in {:?}", self.try_in)
    }
}

steadfast_call::debug_in_one_line!(NotOwner);

impl Error for NotOwner {}
