use std::sync::Arc;

use http::Extensions;
use hyper_util::client::legacy::connect::CaptureConnection;
use steadfast_call::{
    Fate,
    ext::{self, Connection as _},
};

use super::line::Cutter;

/// A request and its current connection. hyper takes another one if the first was closed before anything was sent.
#[derive(Debug)]
pub(super) struct Exchange {
    connection: CaptureConnection,
}

impl Exchange {
    pub(super) fn new(connection: CaptureConnection) -> Self {
        Self { connection }
    }

    fn is_connected(&self) -> bool {
        self.connection.connection_metadata().is_some()
    }
}

#[expect(clippy::disallowed_types, reason = "the trait has the standard library's; this reads no clock")]
impl ext::Connection for Exchange {
    fn abort(&self) -> Option<std::time::Instant> {
        let mut extras = Extensions::new();
        {
            let connection = self.connection.connection_metadata();
            let connected = connection.as_ref()?;
            connected.poison();
            connected.get_extras(&mut extras);
        }
        Some(extras.get::<Cutter>()?.cut()?.into_std())
    }
}

/// A send until its answer's head arrives. Dropped before that, it ends its connection.
#[derive(Debug)]
pub(super) struct Sending {
    /// `None` for a body without content, which is never polled; the connection is the evidence then.
    stamp: Option<ext::SendStamp>,
    exchange: Arc<Exchange>,
    is_open: bool,
}

impl Sending {
    pub(super) fn new(stamp: Option<ext::SendStamp>, exchange: Arc<Exchange>) -> Self {
        Self { stamp, exchange, is_open: true }
    }

    /// Notes that the answer's head has arrived.
    pub(super) fn answered(&mut self) {
        self.is_open = false;
    }

    /// Ends the connection, and returns how far the request got.
    pub(super) fn fail(&mut self) -> Fate {
        self.is_open = false;
        // Given up before the connection ends: its body is polled on this connection or never.
        let left = match &self.stamp {
            Some(stamp) => !stamp.give_up(),
            None => self.exchange.is_connected(),
        };
        let ended = self.exchange.abort();
        if left { Fate::Lost { ended } } else { Fate::NeverLeft }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.is_open {
            self.fail();
        }
    }
}
