use steadfast_limit::{Lane, Refusal, SharedAcquire, SharedAsk, SharedCount, SharedSlot, Zone};
use tokio::time::Instant;

use crate::{
    error::NotGranted,
    rule::Rule,
    shared::Shared,
    shared_zone::{SharedPermit, SharedZone},
};

/// The limiter's seam: a limiter that [counts with](steadfast_limit::Builder::count_with) this asks the store for each
/// request that it admits itself.
impl SharedCount for Shared {
    fn acquire(&self, zones: &[SharedAsk<'_>], lane: Lane, deadline: Option<Instant>) -> SharedAcquire {
        let zones: Vec<_> = zones
            .iter()
            .map(|ask| (ask.zone.zone, self.zone(&format!("{:016x}", ask.key), Rule::new(ask.zone))))
            .collect();
        Box::pin(async move {
            let mut permits = Vec::with_capacity(zones.len());
            // A permit of one zone goes back by itself if another zone refuses.
            for (zone, shared) in zones {
                permits.push(in_zone(zone, &shared, lane, deadline).await?);
            }
            Ok(Box::new(Slots(permits)) as Box<dyn SharedSlot>)
        })
    }

    fn has_new_token(&self) {
        self.has_new_token();
    }
}

async fn in_zone(
    zone: Zone,
    shared: &SharedZone,
    lane: Lane,
    deadline: Option<Instant>,
) -> Result<SharedPermit, Refusal> {
    shared.acquire(lane, deadline).await.map_err(|refused| match refused {
        NotGranted::WouldMissDeadline { earliest } => Refusal::WouldMissDeadline { zone, earliest },
        NotGranted::Store(error) => Refusal::NotShared { zone, why: error.to_string().into() },
    })
}

/// One permit in each zone of a request.
struct Slots(Vec<SharedPermit>);

impl SharedSlot for Slots {
    fn is_usable(&self) -> bool {
        self.0.iter().all(SharedPermit::is_usable)
    }

    fn sent(&mut self) {
        self.0.iter_mut().for_each(SharedPermit::sent);
    }

    fn settle(self: Box<Self>) {
        self.0.into_iter().for_each(SharedPermit::settle);
    }

    fn lose_ended(self: Box<Self>) {
        self.0.into_iter().for_each(SharedPermit::lose_ended);
    }

    fn refund(self: Box<Self>) {
        self.0.into_iter().for_each(SharedPermit::refund);
    }
}
