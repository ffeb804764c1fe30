use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use steadfast_call::ext::Account;
use steadfast_spec::Scope;

use crate::{
    connect::Connect,
    error::StoreError,
    followed::Followed,
    health::Health,
    line::Lines,
    new_token::NewToken,
    orders::{
        Orders, Policy,
        book::Book,
        error::{OrdersError, ResumeError},
        halt_call::HaltCall,
        standby::Standby,
    },
    returns::Returns,
    rule::Rule,
    seal::Seal,
    share::Shares,
    shared_zone::SharedZone,
    store::Store,
    token_store::RedisStore,
};

/// One account's place in a store that several processes share.
///
/// # Example
///
/// ```no_run
/// use steadfast_limit::{Account, Lane, ZoneLimiter};
/// use steadfast_redis::{Rule, Shared};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shared = Shared::connect("redis://127.0.0.1:6379", &Account::new("SB0001")).await?;
/// let limiter = ZoneLimiter::preset();
/// let zones: Vec<_> = limiter.settings().iter().map(|zone| shared.zone("gateway", Rule::new(zone))).collect();
///
/// let mut permit = zones[0].acquire(Lane::Trading, None).await?;
/// permit.sent();
/// // The answer is here.
/// permit.settle();
/// # Ok(())
/// # }
/// ```
///
/// # Clone
///
/// Clones share the connection.
///
/// # Cancellation
///
/// A dropped [`acquire`](SharedZone::acquire) and a permit dropped before its request left are given back in the
/// background. So are answers: no caller waits for the store after its own answer. If the store does not hear of them,
/// each slot frees itself once its request can no longer be counted.
#[derive(Clone)]
pub struct Shared {
    inner: Arc<Inner>,
}

/// The part that all zones and permits share.
pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) returns: Returns,
    account: Account,
    process: u64,
    next: AtomicU64,
    pub(crate) new_token: NewToken,
    pub(crate) shares: Shares,
    pub(crate) lines: Lines,
    pub(crate) followed: Followed,
    /// How often the kill switch of the orders was turned, as far as this process has heard.
    turns: Arc<AtomicU64>,
}

impl Shared {
    /// Connects to the server at `address` (`redis://[:PASSWORD@]HOST[:PORT]`, or `rediss://` with TLS) for the account of
    /// that public name.
    ///
    /// Where sentinels watch it, the address names them and their name for it:
    /// `redis-sentinel://[:PASSWORD@]HOST[:PORT],HOST[:PORT],HOST[:PORT]/NAME`, or `rediss-sentinel://`. They are asked for the
    /// server before each connection, and most of them have to answer. The password is the server's, and that of each sentinel
    /// which asks for one.
    ///
    /// # Errors
    ///
    /// Resolves to a [`StoreError`] if the server cannot be reached, or may forget what is counted in it.
    ///
    /// # Panics
    ///
    /// If it is awaited outside of a tokio runtime.
    pub fn connect(address: &str, account: &Account) -> Connect {
        Connect::new(address, account)
    }

    pub(crate) fn of(store: Arc<Store>, account: &Account) -> Self {
        Self {
            inner: Arc::new(Inner {
                returns: Returns::start(Arc::clone(&store)),
                store,
                account: account.clone(),
                process: RandomState::new().hash_one(std::process::id()),
                next: AtomicU64::new(0),
                new_token: NewToken::default(),
                shares: Shares::default(),
                lines: Lines::default(),
                followed: Followed::default(),
                turns: Arc::default(),
            }),
        }
    }

    /// Says that this process has just made the account's token, so nothing can have been counted yet in its zones if
    /// the store knows nothing of them. It applies to each zone's first request within the next 10 s. Without it an
    /// empty store counts as full for a while, except for cancels.
    pub fn has_new_token(&self) {
        self.inner.new_token.note();
    }

    /// Returns a zone at `gateway`. All processes give the same name to the same gateway, and to the same API key or address
    /// there if the zone counts by these: such a zone is one for all accounts.
    #[must_use]
    pub fn zone(&self, gateway: &str, rule: Rule) -> SharedZone {
        // Keys that are counted together lie on one server of a cluster.
        let counted = match rule.scope() {
            Scope::AuthToken => self.inner.account.as_str(),
            Scope::ApiKey => "key",
            Scope::Shared => "all",
            // As in a limiter, any other scope counts by address.
            _ => "ip",
        };
        let key = format!("{{sf:{counted}}}:{}:{gateway}", rule.zone());
        SharedZone::new(Arc::clone(&self.inner), key, rule)
    }

    /// Keeps up with the clocks of these zones' keys from now on, so that this process knows the time of each when its first
    /// request comes.
    pub(crate) fn follow(&self, zones: impl IntoIterator<Item = SharedZone>) {
        Followed::follow(&self.inner, zones.into_iter().map(|zone| Arc::clone(zone.key())));
    }

    /// Asks the store about itself. That it is fit was checked when it was connected to.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it cannot be reached.
    pub async fn health(&self) -> Result<Health, StoreError> {
        Health::of(&self.inner.store).await
    }

    /// Takes the account's orders for the process of this name, if no other one owns them. Otherwise the result says
    /// who does, and a client with it places none.
    ///
    /// It takes up to 9 s if the last owner did not give them back. The name stands in errors of other processes.
    ///
    /// # Errors
    ///
    /// [`OrdersError`] if the store cannot be reached, or may lack some of the orders' journal, as a new one does.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves no owner behind.
    pub async fn orders(&self, process: &str) -> Result<Orders, OrdersError> {
        self.ask_for_orders(process, Policy::Tell)?.orders().await
    }

    /// Waits until the orders are this process's. A store that cannot be reached is waited for.
    ///
    /// # Errors
    ///
    /// As [`orders`](Self::orders), but for a store that cannot be reached.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves no owner behind.
    pub async fn wait_for_orders(&self, process: &str) -> Result<Orders, OrdersError> {
        self.stand_by(process)?.orders().await
    }

    /// Begins to wait for the orders. Unlike [`wait_for_orders`](Self::wait_for_orders), it tells meanwhile who owns them.
    ///
    /// # Errors
    ///
    /// [`OrdersError::NoThread`] if the thread that waits cannot be started.
    pub fn stand_by(&self, process: &str) -> Result<Standby, OrdersError> {
        self.ask_for_orders(process, Policy::Wait)
    }

    fn ask_for_orders(&self, process: &str, policy: Policy) -> Result<Standby, OrdersError> {
        let turns = Arc::clone(&self.inner.turns);
        Standby::start(&self.inner.store, &self.inner.account, process, policy, turns)
    }

    /// Stops the orders and the changes of all processes that share the account's orders, until
    /// [`resume_orders`](Self::resume_orders). Cancels and reads go on. It outlives every process.
    ///
    /// When this returns, no order leaves any more, whichever process owns them: the owner has said that it has heard of it, or
    /// its time is over. That takes less than a second where the owner answers, and 9 s where it does not. An order that was
    /// asked for before and has not left does not leave later either, even after a resume.
    ///
    /// False if another process has resumed meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be reached for 10 s. It may have been told all the same.
    ///
    /// # Cancellation
    ///
    /// A dropped future may have told the store.
    pub async fn halt_orders(&self) -> Result<bool, StoreError> {
        HaltCall::new(&self.book(), &self.inner.turns).halt().await
    }

    /// Lets orders leave again that are asked for from now on. Returns once the owner has heard of it, or after 2 s.
    ///
    /// It ends the halt that holds when it is called, and no later one, also if the store is slow and told after this has failed.
    /// A client that halted [itself](steadfast_dedup::OrderTracker::halt) stays halted.
    ///
    /// # Errors
    ///
    /// [`ResumeError::Store`] if the store cannot be reached for 10 s, and [`ResumeError::HaltedAgain`] if a newer halt holds.
    pub async fn resume_orders(&self) -> Result<(), ResumeError> {
        HaltCall::new(&self.book(), &self.inner.turns).resume().await
    }

    fn book(&self) -> Book {
        // A connection of its own: where a replica has to answer, all calls of a connection wait for that.
        Book::new(Arc::new(self.inner.store.another()), self.inner.account.as_str())
    }

    /// Takes the orders' journal as it is, in spite of what it may lack: a person has compared the service's order list
    /// with what was placed. `mark` is that of [`OrdersError::MayLackEntries`]. False if the store has another one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be reached.
    pub async fn accept_orders(&self, mark: &str) -> Result<bool, StoreError> {
        self.book().accept(mark).await
    }

    /// Returns the store of the account's token, which all processes share, sealed with this key.
    #[must_use]
    pub fn token_store(&self, seal: Seal) -> RedisStore {
        RedisStore::new(Arc::clone(&self.inner.store), self.inner.account.as_str(), Some(seal))
    }

    /// Returns the same without a seal, for a store on this machine.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unfit`] if the store is on another machine.
    pub fn unsealed_token_store(&self) -> Result<RedisStore, StoreError> {
        self.inner.store.check_is_local()?;
        Ok(RedisStore::new(Arc::clone(&self.inner.store), self.inner.account.as_str(), None))
    }
}

impl Inner {
    /// Returns the id of another request.
    pub(crate) fn new_id(&self) -> String {
        format!("{:x}:{:x}", self.process, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("store", &self.inner.store).finish_non_exhaustive()
    }
}
