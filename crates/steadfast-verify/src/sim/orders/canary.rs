//! Clients that are wrong on purpose. The harness must notice each of them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::sim::orders::{
    ours::Ours,
    trader::{Told, Trader},
    workload::Wanted,
};

/// The mistake of a client with one order in three that it places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Canary {
    /// Sends it a second time.
    SendsTwice,
    /// Tells its caller of an order that does not exist.
    TellsOfNothing,
    /// Tells its caller of the order that another caller was told of.
    TellsOfAnother,
    /// Tells its caller that it is not there.
    Denies,
    /// Tells its caller nothing that helps.
    SaysNothing,
    /// Never ends its caller's call.
    Hangs,
}

impl Canary {
    pub(crate) const ALL: [Self; 6] = [
        Self::SendsTwice,
        Self::TellsOfNothing,
        Self::TellsOfAnother,
        Self::Denies,
        Self::SaysNothing,
        Self::Hangs,
    ];

    /// Returns the promise that it breaks.
    pub(crate) const fn breaks(self) -> &'static str {
        match self {
            Self::SendsTwice => "duplicated",
            Self::TellsOfNothing => "lost",
            Self::TellsOfAnother => "wrongly_claimed",
            Self::Denies => "denied",
            Self::SaysNothing => "undecided",
            Self::Hangs => "stuck",
        }
    }
}

/// Our client, with its planted mistake, if any.
pub(crate) struct Planted {
    ours: Arc<Ours>,
    canary: Option<Canary>,
    told: Mutex<Option<String>>,
}

impl Planted {
    pub(crate) fn new(ours: Arc<Ours>, canary: Option<Canary>) -> Self {
        Self { ours, canary, told: Mutex::default() }
    }

    async fn spoil(&self, canary: Canary, wanted: &Wanted, order_id: String) -> Told {
        match canary {
            Canary::SendsTwice => {
                drop(self.ours.place(&Wanted { named: false, ..wanted.clone() }).await);
                Told::Placed(order_id)
            }
            Canary::TellsOfNothing => Told::Placed("none".to_owned()),
            Canary::TellsOfAnother => {
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                Told::Placed(told.get_or_insert(order_id).clone())
            }
            Canary::Denies => Told::NotObserved,
            Canary::SaysNothing => Told::Nonsense("planted".to_owned()),
            Canary::Hangs => std::future::pending().await,
        }
    }
}

impl Trader for Planted {
    async fn place(&self, wanted: &Wanted) -> Told {
        match (self.ours.place(wanted).await, self.canary) {
            (Told::Placed(order_id), Some(canary)) if wanted.number.is_multiple_of(3) => {
                self.spoil(canary, wanted, order_id).await
            }
            (told, _) => told,
        }
    }

    async fn cancel(&self, order_id: &str) {
        self.ours.cancel(order_id).await;
    }

    async fn look(&self, after: u64) {
        self.ours.look(after).await;
    }
}
