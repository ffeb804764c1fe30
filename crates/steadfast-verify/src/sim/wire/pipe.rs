//! A wire of bytes: a real HTTP client on one end of a pipe in memory, a real HTTP server on the other.

mod fate;
mod sim_io;
mod witness;

use std::{
    future::{Ready, ready},
    io,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Uri};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use steadfast::{BaseUrl, HostTransport, Line, RequestBody};
use steadfast_sandbox::{
    PeerIp,
    wire::{Answer, serve_patiently},
};

use self::{
    fate::{Fate, Fates},
    witness::{Sent, Witness},
};
pub(crate) use self::{
    fate::{NAMES as FATES, OUTAGE},
    sim_io::{SimIo, pair},
};
use crate::sim::{axes::Axes, wire::Wire};

/// How long a gateway keeps an idle connection, and one behind an outage.
const IDLE: Duration = Duration::from_secs(10);
const LONGEST_OUTAGE: Duration = Duration::from_secs(180);

/// Opens connections to the gateway behind a [`Wire`]; each has a fate of its own.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    wire: Wire,
    fates: Arc<Fates>,
    opened: Arc<AtomicU64>,
}

impl Pipe {
    /// Returns the transport of a stack whose connections end behind `wire`.
    pub(crate) fn transport(
        wire: &Wire,
        base: &BaseUrl,
        axes: Axes,
    ) -> Witness<HostTransport<Sent<RequestBody>>> {
        let fates = Arc::new(Fates::of(wire.chooser(), axes));
        let pipe = Self { wire: wire.clone(), fates, opened: Arc::default() };
        Witness::new(HostTransport::over(base, pipe), wire.clone())
    }

    fn open(&self) -> io::Result<Line<TokioIo<SimIo>>> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let healed = self.wire.is_healed();
        let fate = if healed { Fate::Whole } else { self.fates.of_connection(self.wire.chooser(), number) };
        self.wire.met(fate.name());
        let (mut client, server) = pair();
        fate.befall(&mut client)?;
        let ending = self.wire.shared.weather.ending;
        if ending.is_abortive() {
            client.set_zero_linger();
        }
        let wire = self.wire.clone();
        // Bytes held back by an outage may be the first to arrive.
        let patience = if fate.name() == OUTAGE { LONGEST_OUTAGE } else { IDLE };
        tokio::spawn(serve_patiently(server, patience, move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(PeerIp(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            let answer = wire.clone().answer(request);
            async move { answer.await.map_or(Answer::Reset, Answer::Response) }
        }));
        Ok(Line::over(TokioIo::new(client), ending.is_promised()))
    }
}

impl tower::Service<Uri> for Pipe {
    type Response = Line<TokioIo<SimIo>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Line<TokioIo<SimIo>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.open())
    }
}
