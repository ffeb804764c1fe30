use steadfast_spec::OrderRequest;

use super::{
    contender::{Contender, How, Told},
    wire::{BACKOFF, Look, Wire},
};

/// Sends again after 1, 2, 4 and 8 seconds after any failure, as a general retry layer does.
pub(crate) struct Naive(Wire);

impl Naive {
    pub(crate) fn new(wire: Wire) -> Self {
        Self(wire)
    }
}

impl Contender for Naive {
    async fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    async fn place(&self, name: &str, order: &OrderRequest) -> Told {
        let mut pauses = BACKOFF.into_iter();
        let mut how = How::Acknowledged;
        loop {
            match self.0.place(name, order).await {
                Look::Placed(order_id) => return Told::Placed { order_id, how },
                // A client that goes by the status takes a 400 for an error that cannot be repeated.
                Look::Refused => return Told::Unresolved("refused with 4xx"),
                Look::Later => {}
                Look::Failed => how = How::SentAgain,
            }
            match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Told::Unresolved("all sends failed"),
            }
        }
    }

    async fn cancel(&self, name: &str, order_id: &str) {
        let mut pauses = BACKOFF.into_iter();
        while !self.0.cancel(name, order_id).await {
            let Some(pause) = pauses.next() else { return };
            tokio::time::sleep(pause).await;
        }
    }

    async fn poll(&self, name: &str) {
        self.0.list(name).await;
    }

    fn in_doubt(&self) -> usize {
        // It never has orders in doubt.
        0
    }

    async fn finish(&self) {}
}
