//! A foreign program that trades on the same account, although the client takes it for exclusive.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use steadfast_sandbox::Sandbox;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::sim::{
    chooser::{Chooser, Site},
    orders::{
        remarks::strangers,
        workload::{Shape, Workload},
        world::World,
    },
};

/// The foreign orders, with their terms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders(Arc<Mutex<BTreeMap<String, Shape>>>);

/// The most foreign orders in one session.
const MOST: u64 = 5;
/// How long after its twin is wanted a foreign order may come, in milliseconds.
const WITHIN: u32 = 5_000;

impl Orders {
    /// Places foreign twins of the callers' orders: in one seed of fifteen, and in half of those in which the account is
    /// shared. Dropping the result stops it.
    pub(crate) fn place(
        &self,
        chooser: &Chooser,
        sandbox: &Sandbox,
        workload: &Workload,
        start: Instant,
        world: &World,
    ) -> JoinSet<()> {
        let mut placing = JoinSet::new();
        let count = u32::try_from(workload.wanted.len()).unwrap_or(u32::MAX);
        let shares = if world.is_shared() { [50, 50] } else { [94, 6] };
        let trades = chooser.weigh(Site::new("foreign.trades"), &shares) == 1;
        for number in (0..MOST).filter(|_| trades && count > 0) {
            let site = |what| Site::new(what).of(number);
            if chooser.choose(site("foreign"), 2) == 0 {
                continue;
            }
            let twin = &workload.wanted[chooser.choose(site("foreign.of"), count) as usize];
            let later = Duration::from_millis(u64::from(chooser.choose(site("foreign.after"), WITHIN)));
            let Ok(order) = strangers(chooser, world.axes, number, twin.shape) else { continue };
            let (placed, sandbox, shape, at) =
                (self.clone(), sandbox.clone(), twin.shape, start + twin.at + later);
            placing.spawn(async move {
                sleep_until(at).await;
                let order_id = sandbox.place_foreign(&order);
                placed.0.lock().unwrap_or_else(PoisonError::into_inner).insert(order_id, shape);
            });
        }
        placing
    }

    pub(crate) fn take(&self) -> BTreeMap<String, Shape> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
