//! The orders that several sidecars share: this one waits for them, has them, or has lost them.

use std::{pin::Pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use steadfast::{
    BaseUrl, Client,
    limit::ZoneLimiter,
    redis::{Orders, OrdersError, OrdersWatch, RedisStore, ResumeError, Shared, Standby},
};
use steadfast_proxy::{NotResumed, Proxy, SharedOrders, Sharing};
use tokio::time::{Instant, sleep};

use super::news::Telling;
use crate::{
    account::{Account, Credentials},
    client::{self, Book},
    exit::{Failed, print_note},
    readable::hide_tokens_of,
    redis::{Store, process_name},
    resends::Resends,
};

/// How often it is looked whether the orders are lost.
const LOOKS_EVERY: Duration = Duration::from_millis(250);
/// How soon the store is asked again after it gave the orders to nobody.
const ASKS_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often the store is asked about itself.
const HEALTH_EVERY: Duration = Duration::from_secs(2);
/// How soon the order list is read again for a slot, if it could not be read.
const READS_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How long the start waits until it is known who owns the orders.
const KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// The account whose orders are shared, with all that a client of it needs.
pub(super) struct Shares {
    store: Store,
    limits: ZoneLimiter,
    account: Account,
    credentials: Credentials,
    /// Where the logins of all machines keep the token.
    tokens: Option<RedisStore>,
    resends: Resends,
    known: Arc<Known>,
}

/// The owner of the orders, as far as this process knows it.
pub(super) struct Known {
    process: Arc<str>,
    store: Arc<str>,
    shared: Shared,
    state: Mutex<State>,
}

struct State {
    watch: OrdersWatch,
    round_trip: Option<Duration>,
    /// Why the store does not answer.
    unreachable: Option<Arc<str>>,
    /// Why it gives the orders to nobody.
    withheld: Option<Arc<str>>,
    mark: Option<Arc<str>>,
}

impl Shares {
    /// Begins to wait for the orders, and returns the client for the meantime: it places none.
    pub(super) async fn open(
        store: Store,
        account: Account,
        resends: Resends,
    ) -> Result<(Self, Standby, Client), Failed> {
        let credentials = account.credentials().await?;
        let tokens = match credentials {
            Credentials::Totp { .. } => Some(store.tokens().await?),
            _ => None,
        };
        let limits = store.limits()?;
        let process: Arc<str> = process_name()?.into();
        let standby = store.shared.stand_by(&process).map_err(Failed::error)?;
        let state = Mutex::new(State {
            watch: standby.watch(),
            round_trip: Some(store.round_trip),
            unreachable: None,
            withheld: None,
            mark: None,
        });
        let known = Known { process, store: store.name.as_str().into(), shared: store.shared.clone(), state };
        let shares = Self { store, limits, account, credentials, tokens, resends, known: Arc::new(known) };
        let client = shares.client(Book::OfOthers(standby.watch()))?;
        Ok((shares, standby, client))
    }

    pub(super) fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known)
    }

    pub(super) fn base(&self) -> &BaseUrl {
        &self.account.base
    }

    fn client(&self, book: Book) -> Result<Client, Failed> {
        let access = self.credentials.access(&self.account)?;
        let access = match &self.tokens {
            Some(tokens) => access.shared_store(tokens.clone()),
            None => access,
        };
        let (base, name) = (self.account.base.clone(), self.store.account.clone());
        let client = client::create_sharing(base, access, name, self.limits.clone(), self.resends, book)?;
        hide_tokens_of(client.tokens());
        Ok(client)
    }

    /// Takes the orders whenever they are free, and gives the proxy a client that places them. It does not end.
    pub(super) async fn keep(self, mut standby: Standby, proxy: Proxy, telling: Arc<Telling>) {
        loop {
            match standby.orders().await {
                Ok(orders) => {
                    let watch = orders.watch();
                    match self.serve(orders, &proxy, &telling) {
                        Ok(()) => {
                            while !watch.is_over() {
                                sleep(LOOKS_EVERY).await;
                            }
                            print_note(
                                "steadfast: the orders are not this process's any more: it places none",
                            );
                        }
                        Err(failed) => print_note(format_args!("steadfast: no order is placed: {failed}")),
                    }
                }
                Err(error) => self.known.withheld(&error),
            }
            standby = loop {
                sleep(ASKS_AGAIN_AFTER).await;
                match self.store.shared.stand_by(&self.known.process) {
                    Ok(standby) => break standby,
                    Err(error) => self.known.withheld(&error),
                }
            };
            self.known.state.lock().watch = standby.watch();
        }
    }

    fn serve(&self, orders: Orders, proxy: &Proxy, telling: &Telling) -> Result<(), Failed> {
        let client = self.client(Book::Own(orders))?;
        telling.hear(client.tracker().events());
        proxy.replace_client(client);
        {
            let mut state = self.known.state.lock();
            (state.withheld, state.mark) = (None, None);
        }
        print_note(format_args!(
            "steadfast: {} owns the orders in store {} and places them; none of an earlier owner is sent again",
            self.known.process, self.known.store
        ));
        Ok(())
    }
}

/// Reads the order list once with each token. The store lends a process its slot for cancels with the first request, and an
/// idle sidecar may be the one through which they must get out while the store is away.
pub(super) async fn borrow_slots(proxy: Proxy) {
    let mut read_with = None;
    loop {
        let client = proxy.client();
        let token = client.tokens().status().generation;
        let mut pause = HEALTH_EVERY;
        if token.is_none() || token != read_with {
            match client.prewarm().await {
                Ok(()) => read_with = client.tokens().status().generation,
                Err(_) => pause = READS_AGAIN_AFTER,
            }
        }
        drop(client);
        sleep(pause).await;
    }
}

impl Known {
    /// Notes why the store gives the orders to nobody. Each reason is told once.
    fn withheld(&self, error: &OrdersError) {
        let mark = match error {
            OrdersError::MayLackEntries { mark, .. } => Some(Arc::clone(mark)),
            _ => None,
        };
        let why: Arc<str> = error.to_string().into();
        {
            let mut state = self.state.lock();
            if state.withheld.as_ref() == Some(&why) {
                return;
            }
            (state.withheld, state.mark) = (Some(Arc::clone(&why)), mark.clone());
        }
        print_note(format_args!("steadfast: no order is placed: {why}"));
        if let Some(mark) = mark {
            print_note(format_args!(
                "steadfast: to accept it: POST /-/accept?mark={mark} on the operator's port, with the local token, once the order \
                 list was compared"
            ));
        }
    }

    /// Asks the store about itself, again and again.
    pub(super) async fn examine(&self) {
        loop {
            let found = self.shared.health().await;
            let (round_trip, unreachable) = match found {
                Ok(health) => (Some(health.round_trip), None),
                Err(error) => (None, Some(error.to_string().into())),
            };
            {
                let mut state = self.state.lock();
                (state.round_trip, state.unreachable) = (round_trip, unreachable);
            }
            sleep(HEALTH_EVERY).await;
        }
    }

    /// Waits until it is known who owns the orders, but not for long.
    pub(super) async fn begins(&self) {
        let end = Instant::now() + KNOWN_WITHIN;
        while Instant::now() < end {
            let now = self.now();
            if now.is_owner || now.owner.is_some() || now.trouble.is_some() {
                return;
            }
            sleep(LOOKS_EVERY / 10).await;
        }
    }
}

impl SharedOrders for Known {
    fn now(&self) -> Sharing {
        let state = self.state.lock();
        let mut now = Sharing::new(Arc::clone(&self.process), Arc::clone(&self.store));
        now.is_owner = state.watch.is_owner();
        now.owner = state.watch.owner();
        now.round_trip = state.round_trip;
        now.trouble.clone_from(&state.unreachable);
        // Once the store has given the orders to somebody, why it gave them to nobody is over.
        if !now.is_owner && now.owner.is_none() {
            now.trouble = now.trouble.or_else(|| state.withheld.clone());
            now.mark.clone_from(&state.mark);
        }
        now
    }

    fn halt(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            match shared.halt_orders().await {
                Ok(true) => Ok(()),
                Ok(false) => Err("another sidecar was told to resume meanwhile".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn resume(&self) -> Pin<Box<dyn Future<Output = Result<(), NotResumed>> + Send>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            shared.resume_orders().await.map_err(|error| match error {
                ResumeError::HaltedAgain { halt } => NotResumed::HaltedAgain { halt },
                error => NotResumed::NotHeard(error.to_string()),
            })
        })
    }

    fn accept(&self, mark: String) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            match shared.accept_orders(&mark).await {
                Ok(true) => Ok(()),
                Ok(false) => Err("the store has another mark, or nothing to accept".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}
