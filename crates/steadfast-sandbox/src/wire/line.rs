use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::TcpStream,
};

/// The server's end of a connection.
pub trait Line: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Ends it in a way that the client can tell from a regular end.
    fn reset(self);
}

impl Line for TcpStream {
    fn reset(self) {
        // A lingering time of zero makes the close a reset. Should it fail, the client sees a close: also lost.
        let _: io::Result<()> = socket2::SockRef::from(&self).set_linger(Some(Duration::ZERO));
    }
}

/// A pipe of tokio's has no reset: its other end sees the end.
impl Line for DuplexStream {
    fn reset(self) {}
}
