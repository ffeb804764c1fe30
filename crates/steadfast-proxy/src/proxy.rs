use std::{fmt, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use steadfast::{BaseUrl, Client, call::Routes, spec::Paths};

use crate::{
    description,
    forward::Forward,
    front::{Admission, Scope, Shared},
    listener::Limits,
    orders_of::OrdersOf,
    sharing::SharedOrders,
};

/// A sidecar: the service's own paths on a local address, with the stack behind them.
///
/// # Clone
///
/// Clones are the same sidecar.
#[derive(Clone)]
pub struct Proxy {
    pub(crate) forward: Arc<Forward>,
    pub(crate) admission: Shared,
    pub(crate) routes: Arc<Routes>,
    /// The document of `GET /openapi.json`.
    pub(crate) described: Bytes,
    pub(crate) passes_intent: bool,
    /// The account or the sandbox whose orders it places, as it tells.
    pub(crate) orders_of: Option<OrdersOf>,
    pub(crate) limits: Limits,
    pub(crate) reload: Option<Reload>,
}

/// Reads the configuration again. Returns what has changed, or why nothing has.
pub(crate) type Reload = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

impl Proxy {
    /// Passes requests of those whom `admission` admits on to the service at `base` by `client`.
    ///
    /// `paths` are those of the client. Its routes should [guard](Routes::guard_unknown) unknown paths.
    #[must_use]
    pub fn new(client: Client, base: BaseUrl, paths: &Paths, admission: impl Into<Admission>) -> Self {
        let mut random = [0; 8];
        // Without chance the names of two processes could be the same, and their orders be taken for one.
        let prefix = match getrandom::fill(&mut random) {
            Ok(()) => u64::from_le_bytes(random),
            Err(_) => u64::from(std::process::id()),
        };
        let forward = Forward::new(client, base, format!("{prefix:016x}"));
        let admission = admission.into();
        forward.switch.read_only(admission.reads_only());
        Self {
            forward: Arc::new(forward),
            admission: Shared::new(admission),
            routes: Arc::new(Routes::new(paths)),
            described: description::document(paths),
            passes_intent: false,
            orders_of: None,
            limits: Limits::default(),
            reload: None,
        }
    }

    /// Changes whom all listeners admit, from the next request of each connection on. Returns true if the tokens are
    /// others than before; the dashboard's links and cookies end then, for they came by the old ones.
    ///
    /// If it [only reads](Admission::read_only), the client is halted as long as it does: orders that wait in a queue do
    /// not leave either, and are told so.
    pub fn admit(&self, admission: Admission) -> bool {
        let reads_only = admission.reads_only();
        let changed = self.admission.replace(admission);
        self.forward.switch.read_only(reads_only);
        if changed {
            self.forward.dashboard.access.forget();
        }
        changed
    }

    /// Shares the orders of the account with other sidecars. `orders` says who owns them. An order or a change that another
    /// one would have to place is answered with 503.
    #[must_use]
    pub fn shares_orders(self, orders: Arc<dyn SharedOrders>) -> Self {
        // They are given once, before it serves.
        let _ = self.forward.shared.set(orders);
        self
    }

    /// Sends requests through another client from now on: one with the orders of the account, or without them. Requests on their
    /// way end with the client before. A halt holds on, and what the client's journal left in doubt is looked for.
    ///
    /// # Panics
    ///
    /// If it is called outside of a tokio runtime.
    pub fn replace_client(&self, client: Client) {
        self.forward.replace(client);
        tokio::spawn(search(self.client()));
    }

    /// Returns the client that requests go through now.
    #[must_use]
    pub fn client(&self) -> Arc<Client> {
        self.forward.client.get()
    }

    /// Lets an operator read the configuration again, by `POST /-/reload`. `reload` returns what has changed, or why
    /// nothing has. It must not block for long.
    #[must_use]
    pub fn on_reload(self, reload: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self { reload: Some(Arc::new(reload)), ..self }
    }

    /// Passes `x-test-intent` on, the ground truth of tests at a sandbox. No other service may get it.
    #[must_use]
    pub fn pass_test_intent(self) -> Self {
        Self { passes_intent: true, ..self }
    }

    /// Tells programs whose orders it places, by [`OrdersOf::HEADER`] in the answer to `GET /openapi.json`. If it is a sandbox's,
    /// it tells that as well to a request without a local token.
    #[must_use]
    pub fn orders_of(self, whose: OrdersOf) -> Self {
        Self { orders_of: Some(whose), ..self }
    }

    /// Returns the number of orders whose callers wait for an answer.
    #[must_use]
    pub fn waiting_orders(&self) -> usize {
        self.forward.orders.running()
    }

    /// Takes no further order or change from now on, and lets none leave that waits in a queue. Those on their way are
    /// answered. Cancels and reads pass as before, until [`serve`](Self::serve) ends.
    pub fn stop(&self) {
        self.forward.switch.end();
    }

    /// Waits until every order and change on its way is answered. To be called after [`stop`](Self::stop).
    pub async fn drained(&self) {
        self.forward.drained().await;
    }

    /// True between the start and [`stop`](Self::stop).
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.forward.switch.is_running()
    }

    /// Names the account on the dashboard.
    #[must_use]
    pub fn account(self, name: impl Into<String>) -> Self {
        self.forward.dashboard.name_account(name.into());
        self
    }

    /// Returns a link to the dashboard on the operator's listener at this address. It serves once, within ten minutes;
    /// `POST /-/link` makes another one. Its visitor may halt and resume.
    ///
    /// `None` if the system has no random numbers.
    #[must_use]
    pub fn dashboard_link(&self, operators: SocketAddr) -> Option<String> {
        let secret = self.forward.dashboard.access.link(Scope::Trade)?;
        Some(format!("http://{operators}/#{secret}"))
    }
}

/// Looks for the orders that earlier processes left in doubt.
pub(crate) async fn search(client: Arc<Client>) {
    if let Err(error) = client.recover().await {
        tracing::debug!(%error, "no search for orders of earlier processes");
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("base", &self.forward.base).finish_non_exhaustive()
    }
}
