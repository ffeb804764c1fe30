//! The network between a client and the gateway, in tokio's time.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use steadfast_sandbox::{Body, Gateway, NoAnswer};
use tokio::time::{Instant, sleep};
use tower::Service;

/// The delays of requests and answers.
#[derive(Clone, Copy)]
pub(crate) struct Network {
    pub(crate) name: &'static str,
    /// The fixed delay each way.
    pub(crate) delay: Duration,
    /// The average addition. It lets requests overtake each other.
    pub(crate) jitter: Duration,
}

pub(crate) const NETWORKS: [Network; 2] = [
    Network { name: "10 ms each way", delay: Duration::from_millis(10), jitter: Duration::ZERO },
    Network {
        name: "10 ms each way and 10 ms of jitter",
        delay: Duration::from_millis(10),
        jitter: Duration::from_millis(10),
    },
];

/// The time that the last send of a call spent on the network, in the extensions of its answer.
#[derive(Clone, Copy)]
pub(crate) struct OnTheWay(pub(crate) Duration);

#[derive(Clone)]
pub(crate) struct Wire {
    gateway: Gateway,
    network: Network,
    chance: Arc<Mutex<ChaCha8Rng>>,
}

impl Wire {
    pub(crate) fn new(gateway: Gateway, network: Network, seed: u64) -> Self {
        Self { gateway, network, chance: Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))) }
    }

    fn delay(&self) -> Duration {
        self.network.delay + self.network.jitter.mul_f64(exponential(&mut self.chance.lock()))
    }
}

/// Draws a number with mean one, distributed like the gaps between unrelated events.
pub(crate) fn exponential(chance: &mut ChaCha8Rng) -> f64 {
    let even = (chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    -(1.0 - even).ln()
}

impl<B> Service<Request<B>> for Wire
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = NoAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (there, back) = (self.delay(), self.delay());
        let answer = self.gateway.call(request);
        Box::pin(async move {
            let start = Instant::now();
            sleep(there).await;
            let arrived = start.elapsed();
            let mut answer = answer.await?;
            let answered = Instant::now();
            sleep(back).await;
            answer.extensions_mut().insert(OnTheWay(arrived + answered.elapsed()));
            Ok(answer)
        })
    }
}
