use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::Serialize;
use steadfast_spec::{OrderRequest, OrderStatus};

use crate::{
    gateway::{
        book::Owner,
        clock::Clock,
        directory::UserIndex,
        engine::{BASE_PATH, Engine, nanos},
        invalid_fault::InvalidFault,
        plan::FaultEntry,
        service::Gateway,
        settings::EleventhSession,
        shared::{Front, Shared},
        totp,
        truth::{Logins, OrderTruth, State},
    },
    wire::Hub,
};

/// A sandbox: one gateway with its users, its order book and its ground truth.
///
/// # Clone
///
/// Clones are the same sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(crate) shared: Arc<Shared>,
}

/// Everything that a client needs to trade with a sandbox. None of it needs protection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each field is the name that the service's specification uses")]
pub struct Credentials {
    pub base_url: String,
    pub api_key: String,
    pub client_id: String,
    pub client_secret: String,
    pub redirect_uri: String,
    pub password: String,
    pub totp_secret: String,
    pub access_token: String,
}

/// How the admin API and tests may end an open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookEdit {
    /// Fill an open order.
    Fill,
    /// Cancel an open order.
    Cancel,
    /// Reject an open order.
    Reject,
}

/// The order does not exist or is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderNotOpen;

impl std::fmt::Display for OrderNotOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("orderId names no open order")
    }
}

impl std::error::Error for OrderNotOpen {}

impl Sandbox {
    pub(crate) fn new(engine: Engine, front: Front) -> Self {
        let shared = Shared {
            clock: Clock::new(),
            engine: Mutex::new(engine),
            hub: Hub::default(),
            tokens: Mutex::new([String::new(), String::new()]),
            front,
        };
        let sandbox = Self { shared: Arc::new(shared) };
        sandbox.open_sessions();
        sandbox
    }

    /// Opens a session for each user, so that a client can start without a login.
    fn open_sessions(&self) {
        let now = self.shared.clock.now();
        let mut engine = self.shared.engine.lock();
        let draw = engine.draw;
        *self.shared.tokens.lock() = [0, 1].map(|user: UserIndex| {
            engine.sessions.open(user, now, EleventhSession::EvictOldest, draw).unwrap_or_default()
        });
    }

    /// Returns the gateway as a tower service.
    #[must_use]
    pub fn gateway(&self) -> Gateway {
        Gateway::new(self.shared.clone())
    }

    /// Returns the first user's credentials, with the base address of the in-process service.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        self.credentials_of(0, "localhost")
    }

    /// Returns the credentials of the second user, whose app may not trade derivatives.
    #[must_use]
    pub fn other_credentials(&self) -> Credentials {
        self.credentials_of(1, "localhost")
    }

    /// Returns the first user's credentials, with the base address of a server at `authority`.
    #[must_use]
    pub fn credentials_at(&self, authority: impl std::fmt::Display) -> Credentials {
        self.credentials_of(0, authority)
    }

    fn credentials_of(&self, index: UserIndex, authority: impl std::fmt::Display) -> Credentials {
        let engine = self.shared.engine.lock();
        let user = engine.directory.user(index);
        Credentials {
            base_url: format!("http://{authority}{BASE_PATH}"),
            api_key: user.app.api_key.clone(),
            client_id: user.client_id.clone(),
            client_secret: user.app.secret.clone(),
            redirect_uri: user.app.redirect_uri.clone(),
            password: user.password.clone(),
            totp_secret: user.totp_secret.clone(),
            access_token: self.shared.tokens.lock()[index].clone(),
        }
    }

    /// Moves the gateway's clock forward, for wall time and quotas alike.
    pub fn advance(&self, by: Duration) {
        self.shared.clock.advance(by);
    }

    /// Returns the gateway's clock: the time since the sandbox was started, skipped time included.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.shared.clock.now()
    }

    /// Returns the ground truth so far.
    #[must_use]
    pub fn state(&self) -> State {
        let now = self.shared.clock.now();
        let mut engine = self.shared.engine.lock();
        engine.settle(now);
        let orders = engine.book.iter().map(|order| OrderTruth {
            order_id: order.order_id.clone(),
            owner: engine.directory.user(order.user).client_id.clone(),
            intent: order.intent.clone(),
            applied_ns: nanos(order.applied),
            sym_id: order.request.sym_id().to_string(),
            qty: order.request.qty().to_string(),
            side: order.request.side().as_str(),
            order_type: order.request.order_type().as_str(),
            product: order.request.product().as_str(),
            validity: order.request.validity().as_str(),
            status: order.status(now).as_str(),
            leg_type: order.leg.as_str(),
        });
        let record = &engine.record;
        State {
            now_ns: nanos(now),
            orders: orders.collect(),
            pending_orders: engine.late.len(),
            arrivals: record.arrivals.iter().cloned().collect(),
            requests: record.requests,
            refusals: record.refusals.clone(),
            injected_429s: record.injected_429s,
            faults: record.faults.iter().map(|(fault, times)| ((*fault).to_owned(), *times)).collect(),
            logins: Logins { active_sessions: engine.sessions.active(now), ..record.logins },
        }
    }

    /// Returns how often each fault has struck; faults that never did are absent.
    #[must_use]
    pub fn fault_counts(&self) -> BTreeMap<&'static str, u64> {
        self.shared.engine.lock().record.faults.clone()
    }

    /// Returns the first user's authenticator code, by the gateway's clock.
    #[must_use]
    pub fn totp_now(&self) -> String {
        self.totp_of(0)
    }

    /// Returns the second user's authenticator code, by the gateway's clock.
    #[must_use]
    pub fn other_totp_now(&self) -> String {
        self.totp_of(1)
    }

    fn totp_of(&self, index: UserIndex) -> String {
        let now = self.shared.clock.now();
        let engine = self.shared.engine.lock();
        let secret = &engine.directory.user(index).totp_secret;
        let secret = data_encoding::BASE32_NOPAD.decode(secret.as_bytes()).unwrap_or_default();
        totp::code(&secret, totp::step_at(engine.wall(now)))
    }

    /// Sends a user a one-time code, as an SMS would: valid once, for 60 seconds (§5.4). `None` for an unknown
    /// user.
    #[must_use]
    pub fn send_otp(&self, client_id: &str) -> Option<String> {
        let now = self.shared.clock.now();
        let mut engine = self.shared.engine.lock();
        let user = engine.directory.by_client_id(client_id)?;
        let code = format!("{:06}", engine.draw.below("otp", &nanos(now).to_string(), 1_000_000));
        engine.directory.user_mut(user).otp = Some((code.clone(), now + Duration::from_secs(60)));
        Some(code)
    }

    /// Sets the addresses from which a user's app may be used (§5.6); `None` admits any.
    pub fn whitelist(&self, client_id: &str, addresses: Option<Vec<IpAddr>>) {
        let mut engine = self.shared.engine.lock();
        if let Some(user) = engine.directory.by_client_id(client_id) {
            let addresses = addresses.map(|list| list.into_iter().collect());
            engine.directory.user_mut(user).app.register(addresses);
        }
    }

    /// Injects a fault.
    ///
    /// # Errors
    ///
    /// [`InvalidFault`] naming what cannot be injected.
    pub fn inject(&self, fault: FaultEntry) -> Result<(), InvalidFault> {
        self.shared.engine.lock().plan.add(fault)
    }

    /// Injects all faults, or none.
    pub(crate) fn inject_all(&self, faults: Vec<FaultEntry>) -> Result<(), InvalidFault> {
        let mut engine = self.shared.engine.lock();
        let mut plan = engine.plan.clone();
        faults.into_iter().try_for_each(|fault| plan.add(fault))?;
        engine.plan = plan;
        Ok(())
    }

    /// Returns the faults that are planned: those with a rate, and what is left of the exact ones.
    #[must_use]
    pub fn planned_faults(&self) -> Vec<FaultEntry> {
        self.shared.engine.lock().plan.entries()
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.engine.lock().plan.clear();
    }

    /// Ends one token, or all of them, as a night roll-over does.
    pub fn revoke(&self, token: Option<&str>) {
        let sessions = &mut self.shared.engine.lock().sessions;
        match token {
            Some(token) => sessions.revoke(token),
            None => sessions.revoke_all(),
        }
    }

    /// Books an order from another channel, such as the user's mobile app. Returns its id.
    pub fn place_foreign(&self, request: &OrderRequest) -> String {
        let now = self.shared.clock.now();
        let token = self.shared.tokens.lock()[0].clone();
        let mut engine = self.shared.engine.lock();
        let draw = engine.draw;
        let session = engine.sessions.find(&token, now).map_or(0, |session| session.number);
        engine.book.apply_foreign(&Owner { user: 0, session, intent: None }, request, now, draw)
    }

    /// Ends an open order as the market or the user's mobile app would.
    ///
    /// # Errors
    ///
    /// [`OrderNotOpen`] if the order does not exist or is not open.
    pub fn edit_order(&self, order_id: &str, edit: BookEdit) -> Result<(), OrderNotOpen> {
        let now = self.shared.clock.now();
        let status = match edit {
            BookEdit::Fill => OrderStatus::Completed,
            BookEdit::Cancel => OrderStatus::Cancelled,
            BookEdit::Reject => OrderStatus::Rejected,
        };
        let mut engine = self.shared.engine.lock();
        engine.settle(now);
        engine.book.finish(order_id, status, now).map_err(|_| OrderNotOpen)
    }

    /// Forgets orders, sessions, faults and the ground truth, and opens new sessions. The clock goes on.
    pub fn reset(&self) {
        self.shared.engine.lock().reset();
        self.open_sessions();
    }
}
