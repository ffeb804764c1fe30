use std::time::Duration;

use steadfast_limit::{Lane, Refusal, SharedAcquire, SharedAsk, SharedCount, SharedSlot, Zone};
use tokio::{runtime::Handle, time::Instant};

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
        let zones: Vec<_> = zones.iter().map(|ask| (ask.zone.zone, zone_of(self, ask))).collect();
        Box::pin(async move {
            let mut permits: Vec<Option<SharedPermit>> = zones.iter().map(|_| None).collect();
            let is_held =
                |permit: &Option<SharedPermit>| permit.as_ref().is_some_and(SharedPermit::is_usable);
            // One that was held for too long, while another was waited for, is given back and asked for again.
            while let Some(lacking) = permits.iter().position(|permit| !is_held(permit)) {
                permits[lacking] = None;
                let (zone, shared) = &zones[lacking];
                // A permit of one zone goes back by itself if another zone refuses.
                permits[lacking] = Some(in_zone(*zone, shared, lane, deadline).await?);
            }
            Ok(Box::new(Slots(permits.into_iter().flatten().collect())) as Box<dyn SharedSlot>)
        })
    }

    fn has_new_token(&self, zones: &[SharedAsk<'_>]) {
        Self::has_new_token(self);
        let Ok(runtime) = Handle::try_current() else { return };
        // A request that never leaves makes the key, so that a process that is handed the token finds it.
        for zone in zones.iter().map(|ask| zone_of(self, ask)) {
            runtime.spawn(async move {
                drop(zone.acquire(Lane::Bulk, Some(Instant::now() + MAKES_KEYS_WITHIN)).await);
            });
        }
    }

    fn expect(&self, zones: &[SharedAsk<'_>]) {
        self.follow(zones.iter().map(|ask| zone_of(self, ask)));
    }
}

/// How long the store has to make the keys of a new token. Later the first request makes its own.
const MAKES_KEYS_WITHIN: Duration = Duration::from_secs(2);

fn zone_of(shared: &Shared, ask: &SharedAsk<'_>) -> SharedZone {
    let rule = Rule::new(ask.zone).arrives_within(ask.arrives_within);
    // Cancels fall under this zone (§8).
    let rule = if rule.zone() == Zone::GENERAL { rule.emergency_share() } else { rule };
    shared.zone(&format!("{:016x}", ask.key), rule)
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
