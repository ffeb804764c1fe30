//! Peers that read tokio's clock. They run in a paused runtime, and wait there as in real use.

use std::{collections::VecDeque, future::Future, pin::Pin, sync::Arc, time::Duration};

use steadfast::limit::Lane;
use steadfast_spec::Zone;
use tokio::{
    runtime::Builder,
    select,
    time::{Instant, sleep_until},
};
use tower::{
    BoxError, Layer, Service, ServiceExt,
    limit::{RateLimit, rate::Rate},
    service_fn,
    util::BoxService,
};

use super::{
    client::{Client, Ending, RequestId},
    contender::Contender,
    gateway::{Gateway, windows_of},
    session::Session,
    tally::Tally,
};
use crate::{
    peers::{LeakyBucket, TowerResilience},
    sim::network::Nanos,
};

/// A service that completes when its limits let a request pass.
type Permits = BoxService<(), (), BoxError>;

type Passing = Pin<Box<dyn Future<Output = Result<Permits, BoxError>>>>;

/// Runs a session until `end` with one of the peers that wait on tokio's timer.
///
/// # Errors
///
/// The error of the peer or its runtime; neither has one here.
pub(super) fn run(
    session: Session,
    contender: Contender,
    zone: Zone,
    end: Nanos,
) -> Result<(Tally, Gateway), BoxError> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(drive(session, contender, zone, end))
}

async fn drive(
    mut session: Session,
    contender: Contender,
    zone: Zone,
    end: Nanos,
) -> Result<(Tally, Gateway), BoxError> {
    let start = Instant::now();
    let now = || start.elapsed().as_nanos() as Nanos;
    let mut permits = Some(permits(contender, zone)?);
    let mut passing: Option<Passing> = None;
    let mut queue = Queue::default();
    session.start(&mut queue, 0);
    loop {
        while session.next() <= now().min(end) {
            session.step(&mut queue);
        }
        if now() >= end {
            return Ok(session.finish(end));
        }
        if passing.is_none()
            && !queue.waiting.is_empty()
            && let Some(permits) = permits.take()
        {
            passing = Some(Box::pin(pass(permits)));
        }
        let wake = start + Duration::from_nanos(session.next_demand().min(end));
        let Some(foremost) = passing.as_mut() else {
            sleep_until(wake).await;
            continue;
        };
        select! {
            biased;
            back = foremost => {
                permits = Some(back?);
                passing = None;
                queue.granted = true;
                session.send_all(&mut queue, now());
            }
            () = sleep_until(wake) => {}
        }
    }
}

async fn pass(mut permits: Permits) -> Result<Permits, BoxError> {
    permits.ready().await?.call(()).await?;
    Ok(permits)
}

/// Returns a peer's limiter; for several windows, one inside the other.
fn permits(contender: Contender, zone: Zone) -> Result<Permits, BoxError> {
    let open = BoxService::new(service_fn(|()| async { Ok::<_, BoxError>(()) }));
    windows_of(zone).into_iter().try_fold(open, |inner, (limit, period)| match contender {
        Contender::Tower => {
            Ok(BoxService::new(RateLimit::new(inner, Rate::new(u64::from(limit.get()), period))))
        }
        Contender::TowerResilience => {
            let layer = TowerResilience::sliding_log().rate_limit(limit, period)?;
            // It clones the wrapped service; a permit is taken before that is called.
            let shared = service_fn(|()| async { Ok::<_, BoxError>(()) });
            let mut limited = layer.layer(shared);
            let mut inner = inner;
            Ok(BoxService::new(service_fn(move |()| {
                let mine = limited.call(());
                let others = inner.call(());
                async move {
                    mine.await?;
                    others.await
                }
            })))
        }
        _ => {
            let bucket = Arc::new(LeakyBucket::of_one_window(limit, period));
            let mut inner = inner;
            Ok(BoxService::new(service_fn(move |()| {
                let (bucket, others) = (Arc::clone(&bucket), inner.call(()));
                async move {
                    bucket.acquire_one().await;
                    others.await
                }
            })))
        }
    })
}

/// Requests, first come, first served; the first waits for a permit.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<RequestId>,
    granted: bool,
}

impl Client for Queue {
    fn ask(&mut self, id: RequestId, _lane: Lane, _now: Nanos) {
        self.waiting.push_back(id);
    }

    fn leave(&mut self, _now: Nanos) -> Option<RequestId> {
        std::mem::take(&mut self.granted).then(|| self.waiting.pop_front()).flatten()
    }

    fn alarm(&self) -> Option<Nanos> {
        None
    }

    fn wake(&mut self, _now: Nanos) {}

    fn ended(&mut self, _id: RequestId, _ending: Ending, _now: Nanos) {}
}
