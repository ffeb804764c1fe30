use std::{collections::BTreeSet, time::Duration};

use parking_lot::Mutex;
use steadfast_spec::{Code, OrderRecord, OrderRequest};

use super::{
    contender::{Contender, How, Told},
    wire::{BACKOFF, Look, Wire},
};

/// A client that reads the order list once, a second after an answer that proves nothing, and sends the order
/// again if it is not there. The simplest reading of "the order list must be checked before retrying" (§4.4).
pub(crate) struct ChecksOnce {
    wire: Wire,
    /// The ids of orders already assigned to a call.
    known: Mutex<BTreeSet<String>>,
}

const BEFORE_THE_CHECK: Duration = Duration::from_secs(1);

impl ChecksOnce {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire, known: Mutex::default() }
    }

    /// Looks for the order. A failed read is repeated, because it is only a read.
    async fn check(&self, order: &OrderRequest) -> Option<String> {
        tokio::time::sleep(BEFORE_THE_CHECK).await;
        let mut pauses = BACKOFF.into_iter();
        let records = loop {
            if let Some(records) = self.wire.list("check").await {
                break records;
            }
            tokio::time::sleep(pauses.next()?).await;
        };
        let mut known = self.known.lock();
        let found =
            records.into_iter().find(|record| is_like(record, order) && !known.contains(&record.order_id))?;
        known.insert(found.order_id.clone());
        Some(found.order_id)
    }

    fn placed(&self, order_id: String, how: How) -> Told {
        self.known.lock().insert(order_id.clone());
        Told::Placed { order_id, how }
    }
}

fn is_like(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.sym_id.as_deref() == Some(order.sym_id().as_str())
        && record.qty == Some(order.qty())
        && record.side == Some(Code::Known(order.side()))
}

impl Contender for ChecksOnce {
    async fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    async fn place(&self, name: &str, order: &OrderRequest) -> Told {
        let mut pauses = BACKOFF.into_iter();
        let mut how = How::Acknowledged;
        loop {
            match self.wire.place(name, order).await {
                Look::Placed(order_id) => return self.placed(order_id, how),
                Look::Later => {
                    let Some(pause) = pauses.next() else { return Told::Unresolved("all sends failed") };
                    tokio::time::sleep(pause).await;
                }
                // A 400 may be the internal error that §7 says to repeat, so it is checked like the others.
                Look::Refused | Look::Failed => {
                    if let Some(order_id) = self.check(order).await {
                        return self.placed(order_id, How::Found);
                    }
                    how = How::SentAgain;
                    if pauses.next().is_none() {
                        return Told::Unresolved("all sends failed");
                    }
                }
            }
        }
    }

    async fn cancel(&self, name: &str, order_id: &str) {
        let mut pauses = BACKOFF.into_iter();
        while !self.wire.cancel(name, order_id).await {
            let Some(pause) = pauses.next() else { return };
            tokio::time::sleep(pause).await;
        }
    }

    async fn poll(&self, name: &str) {
        self.wire.list(name).await;
    }

    fn in_doubt(&self) -> usize {
        // It decides at once, so the death of the token has nothing to wait for.
        0
    }

    async fn finish(&self) {}
}
