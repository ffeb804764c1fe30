use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::TcpStream,
};

/// The server's end of a connection.
pub trait Line: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Ends it so that the client can tell it from a regular end.
    fn reset(self);
}

impl Line for TcpStream {
    fn reset(self) {
        // A linger time of zero makes the close a reset. If setting it fails, the client sees a close: lost as
        // well.
        let _: io::Result<()> = socket2::SockRef::from(&self).set_linger(Some(Duration::ZERO));
    }
}

/// A tokio pipe has no reset; its other end sees an end of file.
impl Line for DuplexStream {
    fn reset(self) {}
}
