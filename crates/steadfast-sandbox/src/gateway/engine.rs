mod admit;
mod count;
mod strike;

use std::{collections::BTreeMap, time::Duration};

use steadfast_spec::{Endpoint, Form, OrderRequest, Zone};

pub(crate) use self::strike::fault_page;
use crate::{
    faults::Stage,
    gateway::{
        book::{OrderBook, Owner},
        conversion::Conversion,
        directory::Directory,
        draw::Draw,
        latency,
        passage::{Passage, Ticket},
        plan::{Plan, Strike, Target},
        quota::Quotas,
        reply::{Action, Reply},
        request::IncomingRequest,
        session::Sessions,
        settings::Settings,
        special_orders::SpecialOrders,
        symbol_store::{symbol_groups, symbols},
        truth::{ArrivalTruth, Record},
    },
    wire::page::refusal,
};

/// The base path of all endpoints (§1, §9).
pub(crate) const BASE_PATH: &str = "/v2";
/// The target of the login page's form; the broker's own, outside of §4.1.
pub(crate) const LOGIN_PATH: &str = "/api-gw/oauth/login";

/// The gateway as a pure state machine: takes a request and the time, returns a reply.
///
/// It holds no clock, lock or socket. The in-process service, the TCP server and the admin API all drive it.
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) draw: Draw,
    pub(crate) directory: Directory,
    pub(crate) sessions: Sessions,
    pub(crate) quotas: Quotas,
    pub(crate) book: OrderBook,
    pub(crate) specials: SpecialOrders,
    pub(crate) conversions: Vec<Conversion>,
    pub(crate) plan: Plan,
    pub(crate) record: Record,
    /// Orders that come into existence later than they were answered.
    pub(crate) late: BTreeMap<(Duration, u64), (Owner, OrderRequest)>,
    attempts: BTreeMap<String, u32>,
    /// The number of requests sent and of connections opened.
    announced: u64,
    connections: u64,
    /// Until then every request is refused with 429.
    storm_until: Duration,
    /// The wall clock when the sandbox was started, since the Unix epoch.
    pub(crate) epoch: Duration,
}

impl Engine {
    pub(crate) fn new(settings: Settings, plan: Plan, epoch: Duration) -> Self {
        let draw = Draw::new(settings.seed);
        Self {
            directory: Directory::new(draw),
            sessions: Sessions::default(),
            quotas: Quotas::new(&settings),
            book: OrderBook::new(settings.interpretation.order_ids),
            specials: SpecialOrders::default(),
            conversions: Vec::new(),
            record: Record::default(),
            late: BTreeMap::new(),
            attempts: BTreeMap::new(),
            announced: 0,
            connections: 0,
            storm_until: Duration::ZERO,
            draw,
            plan,
            settings,
            epoch,
        }
    }

    /// Returns the wall clock at `now`, since the Unix epoch.
    pub(crate) fn wall(&self, now: Duration) -> Duration {
        self.epoch + now
    }

    /// Puts late orders into the book once they are due.
    pub(crate) fn settle(&mut self, now: Duration) {
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), (owner, request)) = entry.remove_entry();
            self.book.apply(&owner, &request, at, self.draw);
        }
    }

    /// Notes a new connection. Returns the fault that strikes it, if one does.
    pub(crate) fn accept(&mut self) -> Option<(Strike, u64)> {
        self.connections += 1;
        if self.plan.is_empty() {
            return None;
        }
        let key = format!("connection {}", self.connections);
        let target = Target { endpoint: None, intent: None, attempt: 1, key: &key };
        let strike = self.plan.strike(Stage::Accept, target, self.draw)?;
        self.record.count(strike.fault.as_str());
        Some((strike, self.draw.below("at-byte", &key, u64::MAX)))
    }

    /// Notes a request that is sent, and returns how long it is on its way.
    pub(crate) fn announce(&mut self, incoming: &IncomingRequest) -> Ticket {
        self.announced += 1;
        let attempt = incoming.intent.as_ref().map_or(1, |intent| {
            let attempt = self.attempts.entry(intent.clone()).or_default();
            *attempt += 1;
            *attempt
        });
        let key = match &incoming.intent {
            Some(intent) => format!("{intent}/{attempt}"),
            None if self.plan.is_empty() => String::new(),
            None => self.announced.to_string(),
        };
        let mut ticket = Ticket { attempt, key, endpoint: None, delay: Duration::ZERO, fault: None };
        if !self.plan.is_empty() {
            // A script may select by endpoint where the gateway itself does not need it.
            let path = incoming.path.strip_prefix(BASE_PATH).unwrap_or_default();
            ticket.endpoint = self.settings.paths.find(&incoming.method, path);
            let intent = incoming.intent.as_deref();
            let target = Target { endpoint: ticket.endpoint, intent, attempt, key: &ticket.key };
            if let Some(strike) = self.plan.strike(Stage::Up, target, self.draw) {
                ticket.delay = latency::delay(strike.fault, self.draw, &ticket.key);
                ticket.fault = Some(strike.fault.as_str());
            }
        }
        ticket
    }

    /// Answers a request that arrives at `now`.
    pub(crate) fn receive(&mut self, now: Duration, incoming: &IncomingRequest, ticket: Ticket) -> Reply {
        self.settle(now);
        self.record.requests += 1;
        let mut passage = Passage {
            now,
            incoming,
            attempt: ticket.attempt,
            key: ticket.key,
            endpoint: ticket.endpoint,
            query: Form::new(),
            caller: None,
            zones: Vec::new(),
            accounted: now,
            refused_by: None,
            uncounted: Vec::new(),
            faults: ticket.fault.into_iter().collect(),
            answer_after: None,
            totp_skewed: false,
        };
        let mut reply = if self.strike(Stage::Connection, &mut passage).is_some() {
            Reply { after: Duration::ZERO, action: Action::Reset }
        } else {
            let reply = match self.admit(&mut passage) {
                Ok(form) => self.execute(&mut passage, &form),
                Err(page) => page.into(),
            };
            let reply = match reply.action {
                Action::Respond(page) => {
                    Reply { action: Action::Respond(self.settings.interpretation.dress(page)), ..reply }
                }
                Action::Reset | Action::Corrupt(_) => reply,
            };
            self.corrupt(reply, &mut passage)
        };
        reply.after = passage.answer_after.unwrap_or(reply.after);
        if let Some(strike) = self.strike(Stage::Down, &mut passage) {
            reply.after = reply.after.saturating_add(latency::delay(strike.fault, self.draw, &passage.key));
        }
        if let Some(most) = self.settings.counted_after_answer {
            let late = most.mul_f64(self.draw.fraction("counted-late", &self.record.requests.to_string()));
            passage.accounted = passage.accounted.max(now.saturating_add(reply.after).saturating_add(late));
            self.quotas.count_later(&passage.uncounted, passage.accounted);
        }
        self.write_down(passage, &reply);
        reply
    }

    fn execute(&mut self, passage: &mut Passage<'_>, form: &Form) -> Reply {
        let caller = passage.caller;
        if matches!(passage.endpoint, None | Some(Endpoint::Token | Endpoint::IndividualToken))
            && let Some(reply) = self.spoil_login(passage)
        {
            return reply;
        }
        match (passage.endpoint, caller) {
            (None, _) => self.submit_login(passage, form).into(),
            (Some(Endpoint::Authorize), _) => self.login_page(&passage.query).into(),
            (Some(Endpoint::Token), _) => self.exchange_code(passage, form).into(),
            (Some(Endpoint::IndividualToken), Some(caller)) => {
                self.individual_token(passage, caller, form).into()
            }
            (Some(Endpoint::PlaceOrder), Some(caller)) => self.place_order(passage, caller, form),
            (Some(Endpoint::Orders), Some(caller)) => self.list_orders(passage, caller).into(),
            (Some(Endpoint::History), Some(caller)) => {
                self.history(caller, passage.now, &passage.query).into()
            }
            (Some(Endpoint::CancelOrder), Some(caller)) => self.cancel_order(passage, caller).into(),
            (Some(Endpoint::ModifyOrder), Some(caller)) => {
                self.modify_order(passage.now, caller, form).into()
            }
            (Some(Endpoint::OrderMargin), Some(_)) => self.order_margin(form).into(),
            (Some(Endpoint::BasketMargin), Some(_)) => self.basket_margin(form).into(),
            (Some(endpoint), Some(caller)) => match self.special(passage, caller, form) {
                Some(page) => page.into(),
                None => self.read_data(endpoint, passage, caller).into(),
            },
            (Some(Endpoint::SymbolStore), None) => symbols(&passage.incoming.path).into(),
            (Some(Endpoint::SymbolGroups), None) => symbol_groups().into(),
            (Some(_), None) => refusal::unauthorized().into(),
        }
    }

    fn write_down(&mut self, passage: Passage<'_>, reply: &Reply) {
        let path = passage.incoming.path.strip_prefix(BASE_PATH).unwrap_or(&passage.incoming.path);
        let incoming = ArrivalTruth {
            at_ns: nanos(passage.now),
            accounted_ns: nanos(passage.accounted),
            method: passage.incoming.method.as_str().chars().take(20).collect(),
            path: path.chars().take(200).collect(),
            status: match &reply.action {
                Action::Respond(page) => page.status.as_u16(),
                Action::Corrupt(corrupted) => corrupted.shown_status(),
                Action::Reset => 0,
            },
            zones: passage.zones.iter().map(|zone| zone.as_str()).collect(),
            zone_refused: passage.refused_by.map(Zone::as_str),
            owner: passage.caller.map(|caller| self.directory.user(caller.user).client_id.clone()),
            intent: passage.incoming.intent.clone(),
            faults: passage.faults,
        };
        self.record.push(incoming, self.settings.kept_arrivals);
    }

    /// Forgets everything but the users, their apps and the settings.
    pub(crate) fn reset(&mut self) {
        self.sessions = Sessions::default();
        self.quotas.clear();
        self.book.clear();
        self.specials.clear();
        self.conversions.clear();
        self.plan.clear();
        self.record = Record::default();
        self.late.clear();
        self.attempts.clear();
        (self.announced, self.connections, self.storm_until) = (0, 0, Duration::ZERO);
        for user in self.directory.users_mut() {
            (user.failed_logins, user.locked, user.last_step, user.otp) = (0, false, None, None);
            user.app.whitelist.clone_from(&user.app.registered_addresses);
        }
    }
}

pub(crate) fn nanos(at: Duration) -> u64 {
    u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)
}
