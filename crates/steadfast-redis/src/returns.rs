use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{
        Semaphore,
        mpsc::{self, Receiver, Sender, error::TrySendError},
    },
    time::{Instant, sleep, sleep_until},
};

use crate::{rule::Rule, store::Store};

/// Tells the store of answers and of permits given back, off the way of any caller.
pub(crate) struct Returns {
    store: Arc<Store>,
    /// To the task. It ends with its runtime, and the next end starts another one.
    task: Mutex<Sender<Return>>,
}

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

/// How many ends wait to be told at most. A slot of which the store does not hear frees itself.
const MOST_WAITING: usize = 10_000;

/// How many are told at a time, so that one that is not heard keeps no other waiting.
const AT_A_TIME: usize = 64;

impl Returns {
    /// Starts the task. It ends when all has been told after the last sender is dropped.
    pub(crate) fn start(store: Arc<Store>) -> Self {
        let task = Mutex::new(spawn(&Handle::current(), &store));
        Self { store, task }
    }

    pub(crate) fn send(&self, ended: Return) {
        let mut task = self.task.lock();
        // If it is full, the slot frees itself.
        let Err(TrySendError::Closed(ended)) = task.try_send(ended) else { return };
        // So it does outside of a runtime.
        if let Ok(runtime) = Handle::try_current() {
            *task = spawn(&runtime, &self.store);
            let _ = task.try_send(ended);
        }
    }
}

fn spawn(runtime: &Handle, store: &Arc<Store>) -> Sender<Return> {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    runtime.spawn(deliver(Arc::clone(store), receiver));
    sender
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
        while Instant::now() < needless {
            let told = match self.answered {
                Some(_) => store.settle(&self.key, &self.rule, &self.id).await,
                None => store.refund(&self.key, &self.id).await,
            };
            if told.is_ok() {
                return;
            }
            sleep(TELLS_AGAIN_AFTER).await;
        }
    }
}

async fn deliver(store: Arc<Store>, mut receiver: Receiver<Return>) {
    let telling = Arc::new(Semaphore::new(AT_A_TIME));
    while let Some(ended) = receiver.recv().await {
        let (store, telling) = (Arc::clone(&store), Arc::clone(&telling));
        if let Some(answered) = ended.answered.filter(|answered| *answered > Instant::now()) {
            tokio::spawn(async move {
                sleep_until(answered).await;
                ended.tell(&store).await;
            });
        } else if let Ok(place) = telling.acquire_owned().await {
            tokio::spawn(async move {
                ended.tell(&store).await;
                drop(place);
            });
        }
    }
}
