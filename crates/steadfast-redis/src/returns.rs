use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    time::{Instant, sleep, sleep_until},
};

use crate::{rule::Rule, store::Store};

/// Tells the store of answers and of permits given back, off the way of any caller.
pub(crate) struct Returns(UnboundedSender<Return>);

/// The end of one request.
pub(crate) struct Return {
    key: Arc<str>,
    rule: Arc<Rule>,
    id: String,
    /// When it counts as answered; `None` if it never left.
    answered: Option<Instant>,
    ended: Instant,
}

/// How soon it is told again if the store did not hear.
const TELLS_AGAIN_AFTER: Duration = Duration::from_millis(50);

impl Returns {
    /// Starts the task. It ends when all has been told after the last sender is dropped.
    pub(crate) fn start(store: Arc<Store>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(deliver(store, receiver));
        Self(sender)
    }

    pub(crate) fn send(&self, ended: Return) {
        // The task ends with its runtime. A slot of which the store does not hear frees itself.
        let _ = self.0.send(ended);
    }
}

impl Return {
    /// `after` is when it counts as answered, from now; `None` if it never left.
    pub(crate) fn new(key: Arc<str>, rule: Arc<Rule>, id: String, after: Option<Duration>) -> Self {
        let ended = Instant::now();
        Self { key, rule, id, answered: after.map(|after| ended + after), ended }
    }

    async fn tell(&self, store: &Store) {
        // The slot has freed itself by then.
        let needless = self.ended + self.rule.frees_itself_after();
        loop {
            let told = match self.answered {
                Some(_) => store.settle(&self.key, &self.rule, &self.id).await,
                None => store.refund(&self.key, &self.id).await,
            };
            if told.is_ok() || Instant::now() > needless {
                return;
            }
            sleep(TELLS_AGAIN_AFTER).await;
        }
    }
}

async fn deliver(store: Arc<Store>, mut receiver: UnboundedReceiver<Return>) {
    while let Some(ended) = receiver.recv().await {
        match ended.answered.filter(|answered| *answered > Instant::now()) {
            None => ended.tell(&store).await,
            Some(answered) => {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    sleep_until(answered).await;
                    ended.tell(&store).await;
                });
            }
        }
    }
}
