//! Where a proxy listens for programs.

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
};

use steadfast_proxy::Proxy;
use tokio::net::TcpListener;

use crate::exit::Failed;

/// The listener for programs.
pub(super) enum Programs {
    Port(TcpListener),
    #[cfg(unix)]
    Socket(tokio::net::UnixListener, super::socket::Place),
}

impl Programs {
    /// Listens on a Unix socket.
    #[cfg(unix)]
    pub(super) fn at(path: &Path) -> Result<Self, Failed> {
        super::socket::listen(path).map(|(listener, place)| Self::Socket(listener, place))
    }

    #[cfg(not(unix))]
    pub(super) fn at(path: &Path) -> Result<Self, Failed> {
        Err(Failed::usage(format_args!("{}: this system has no Unix sockets", path.display())))
    }

    /// Returns the address that programs are given.
    pub(super) fn base_url(&self) -> Result<String, Failed> {
        match self {
            Self::Port(listener) => {
                Ok(format!("http://{}/v2", listener.local_addr().map_err(Failed::error)?))
            }
            #[cfg(unix)]
            Self::Socket(..) => Ok("http://localhost/v2".to_owned()),
        }
    }

    pub(super) async fn serve(self, proxy: &Proxy, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        match self {
            Self::Port(listener) => proxy.serve(listener, shutdown).await,
            #[cfg(unix)]
            Self::Socket(listener, _place) => proxy.serve_unix(listener, shutdown).await,
        }
    }
}

/// Reads where to listen.
pub(super) fn place(text: &str) -> Result<PathBuf, String> {
    match text.strip_prefix("unix:") {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err("it is not unix:PATH; --port names a port".to_owned()),
    }
}
