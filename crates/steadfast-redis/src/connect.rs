use std::{fmt, future::IntoFuture, pin::Pin, sync::Arc};

use steadfast_call::{BootClock, ext::Account};

use crate::{error::StoreError, shared::Shared, store::Store};

/// Connects to a store when it is awaited; made by [`Shared::connect`].
#[must_use = "futures do nothing unless polled"]
pub struct Connect {
    address: Box<str>,
    account: Account,
    root_certificates: Option<Vec<u8>>,
}

impl Connect {
    pub(crate) fn new(address: &str, account: &Account) -> Self {
        Self { address: address.into(), account: account.clone(), root_certificates: None }
    }

    /// Trusts these certificate authorities (PEM) instead of the public ones, at an address that begins with `rediss`.
    pub fn root_certificates(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { root_certificates: Some(pem.into()), ..self }
    }

    async fn connect(self) -> Result<Shared, StoreError> {
        let store = Store::new(&self.address, self.root_certificates, BootClock::system())?;
        store.connect().await?;
        Ok(Shared::of(Arc::new(store), &self.account))
    }
}

impl IntoFuture for Connect {
    type Output = Result<Shared, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}

impl fmt::Debug for Connect {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("account", &self.account).finish_non_exhaustive()
    }
}
