use std::{
    fmt, io,
    sync::{Arc, atomic::AtomicU64},
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use steadfast_call::ext::Account;
use tokio::{
    runtime::Builder,
    sync::{
        mpsc::{self, UnboundedSender},
        oneshot,
    },
    time::Instant,
};

use super::{
    Orders,
    book::Book,
    error::OrdersError,
    keeper::{Begun, Job, Keeper, Policy},
    ownership::Ownership,
    seat::Seat,
    watch::OrdersWatch,
};
use crate::{random::random_bits, store::Store};

/// A process that waits for the orders of an account; made by [`Shared::stand_by`](crate::Shared::stand_by).
///
/// # Drop
///
/// Dropped, it leaves no owner behind.
#[must_use = "dropped, it waits no more"]
pub struct Standby {
    seat: Arc<Seat>,
    account: Account,
    queue: UnboundedSender<Job>,
    keeper: JoinHandle<()>,
    has_begun: oneshot::Receiver<Result<Begun, OrdersError>>,
}

impl Standby {
    /// Asks for the orders under the name of this process.
    pub(crate) fn start(
        store: &Store,
        account: &Account,
        name: &str,
        policy: Policy,
        turns: Arc<AtomicU64>,
    ) -> Result<Self, OrdersError> {
        // A connection of its own, on the runtime of its own.
        let store = Arc::new(store.another());
        let [own, mark] = [random_bits(), random_bits()].map(|bits| bits.map_err(no_thread));
        let seat = Arc::new(Seat::new(Ownership::new(own?), Arc::clone(&store), turns));
        let keeper = Keeper {
            book: Book::new(store, account.as_str()),
            seat: Arc::clone(&seat),
            name: name.to_owned(),
            mark: mark?,
            entries: 0,
            renews_at: Instant::now(),
            looks_at: Instant::now(),
            confirmed: 0,
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let ((queue, jobs), (begun, has_begun)) = (mpsc::unbounded_channel(), oneshot::channel());
        let thread = thread::Builder::new().name("steadfast-orders".into());
        let keeper =
            thread.spawn(move || runtime.block_on(keeper.run(policy, begun, jobs))).map_err(no_thread)?;
        Ok(Self { seat, account: account.clone(), queue, keeper, has_begun })
    }

    /// Returns what is known of the owner, now and later.
    #[must_use]
    pub fn watch(&self) -> OrdersWatch {
        OrdersWatch::new(Arc::clone(&self.seat))
    }

    /// Waits for the orders. A store that cannot be reached is waited for.
    ///
    /// # Errors
    ///
    /// [`OrdersError`] if the store may lack some of the orders' journal, as a new one does, or cannot be read.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves no owner behind.
    pub async fn orders(self) -> Result<Orders, OrdersError> {
        let ended = |_| no_thread(io::Error::other("it has ended"));
        let (entries, salt, queue) = match self.has_begun.await.map_err(ended)?? {
            Begun::Own(entries, salt) => (entries, salt_of(&salt), Some(self.queue)),
            Begun::Others => (Vec::new(), [0; 16], None),
        };
        let (seat, account, keeper) = (self.seat, self.account, Some(self.keeper));
        Ok(Orders { seat, account, queue, keeper, entries: Mutex::new(entries), salt })
    }
}

impl fmt::Debug for Standby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standby").field("account", &self.account).finish_non_exhaustive()
    }
}

fn no_thread(error: io::Error) -> OrdersError {
    OrdersError::NoThread(Arc::new(error))
}

fn salt_of(text: &str) -> [u8; 16] {
    u128::from_str_radix(text, 16).unwrap_or_default().to_be_bytes()
}
