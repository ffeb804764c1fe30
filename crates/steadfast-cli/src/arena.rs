use std::{net::Ipv4Addr, time::Duration};

use steadfast_sandbox::{Credentials, Sandbox};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::exit::Failed;

/// A gateway on loopback, and the credentials of its user.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) sandbox: Sandbox,
    pub(crate) credentials: Credentials,
    server: AbortHandle,
}

impl Arena {
    /// Serves a sandbox on a free port of loopback for as long as the arena lives.
    pub(crate) async fn serve(sandbox: Sandbox) -> Result<Self, Failed> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Failed::error)?;
        let address = listener.local_addr().map_err(Failed::error)?;
        let credentials = sandbox.credentials_at(address);
        let gateway = sandbox.clone();
        let server = tokio::spawn(async move { gateway.serve(listener, std::future::pending()).await });
        Ok(Self { sandbox, credentials, server: server.abort_handle() })
    }

    /// Returns the time by the gateway's clock.
    pub(crate) fn now(&self) -> Duration {
        self.sandbox.now()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.server.abort();
    }
}
