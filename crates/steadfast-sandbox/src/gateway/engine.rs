use std::{
    borrow::Cow,
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use steadfast_spec::{AuthKind, Endpoint, Form, OrderRequest, Scope, Zone};

use crate::{
    faults::{Fault, Stage},
    gateway::{
        account::Conversion,
        book::{OrderBook, Owner},
        directory::{Directory, UserIndex},
        draw::Draw,
        latency,
        plan::{Plan, Strike, Target},
        quota::{Key, OverQuota, Quotas},
        reply::{Action, Reply},
        request::{IncomingRequest, UnreadBody},
        session::{Session, Sessions},
        settings::Settings,
        spec_reading::{IpRefusal, JsonBody, ListZone, OrderZone, RetryAfter},
        special::SpecialOrders,
        truth::{ArrivalTruth, Record},
    },
    wire::{
        corrupt::corrupt,
        page::{Corrupted, Hint, LAST_DATE, Page, refusal},
    },
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

/// The sender of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) user: UserIndex,
    /// Absent if the endpoint takes only an API key.
    pub(crate) session: Option<Session>,
}

/// The facts about a request from its send on.
pub(crate) struct Ticket {
    attempt: u32,
    key: String,
    endpoint: Option<Endpoint>,
    /// How long it is on its way, and the fault that decided it.
    pub(crate) delay: Duration,
    fault: Option<&'static str>,
}

/// A request on its way through the gateway.
pub(crate) struct Passage<'a> {
    pub(crate) now: Duration,
    pub(crate) incoming: &'a IncomingRequest,
    pub(crate) attempt: u32,
    pub(crate) key: String,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) query: Form,
    pub(crate) caller: Option<Caller>,
    pub(crate) zones: Vec<Zone>,
    pub(crate) accounted: Duration,
    pub(crate) refused_by: Option<Zone>,
    /// The keys for which the request counts after its answer.
    uncounted: Vec<Key>,
    pub(crate) faults: Vec<&'static str>,
    /// How long the answer takes, if a script says so.
    answer_after: Option<Duration>,
    /// True if the gateway's clock for authenticator codes is wrong.
    pub(crate) totp_skewed: bool,
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

    /// Makes the gateway's checks (§7, column "Origin"), in order: path, method, query, credentials, quota, body.
    fn admit(&mut self, passage: &mut Passage<'_>) -> Result<Form, Page> {
        let incoming = passage.incoming;
        let path = incoming.path.strip_prefix(BASE_PATH).filter(|path| path.starts_with('/'));
        let path = path.ok_or_else(refusal::not_found)?;
        if !is_well_formed(path) {
            return Err(refusal::bad_request());
        }
        passage.endpoint = self.endpoint(&incoming.method, path)?;
        // The login page is part of the login flow, and counted like its first step.
        let shown = passage.endpoint.unwrap_or(Endpoint::Authorize);
        passage.query = Form::parse(incoming.query.as_deref().unwrap_or_default().as_bytes())
            .map_err(|_| refusal::bad_request())?;
        // §7, 405: "DELETE without required query parameters such as `orderId`".
        if shown == Endpoint::CancelOrder && passage.query.get("orderId").is_none_or(str::is_empty) {
            return Err(refusal::method_not_allowed());
        }
        if shown.auth() != AuthKind::None {
            self.spoil_credentials(passage)?;
            let caller = self.authenticate(shown.auth(), incoming, passage.now)?;
            passage.caller = Some(caller);
            if !self.directory.user(caller.user).app.admits(incoming.peer) {
                return Err(match self.settings.interpretation.ip_refusal {
                    IpRefusal::Unauthorized => refusal::unauthorized(),
                    IpRefusal::Forbidden => refusal::forbidden(),
                });
            }
        }
        // The key of a token exchange is in its form, so the form is read before the request is counted.
        let form = self.read_form(passage);
        passage.zones = self.zones(shown);
        self.count(passage, form.as_ref().ok())?;
        form
    }

    /// Axes 1 and 2: the zones of two endpoints can be read in several ways.
    fn zones(&self, endpoint: Endpoint) -> Vec<Zone> {
        let reading = &self.settings.interpretation;
        match (endpoint, reading.list_zone, reading.order_zone) {
            (Endpoint::Orders, ListZone::Data, _) => vec![Zone::DATA],
            (Endpoint::Orders, ListZone::Both, _) => vec![Zone::GENERAL, Zone::DATA],
            (Endpoint::PlaceOrder, _, OrderZone::AlsoGeneral) => vec![Zone::PLACE_ORDER, Zone::GENERAL],
            _ => endpoint.zones().to_vec(),
        }
    }

    /// Returns the endpoint; `None` for the login page, which is not in the table.
    fn endpoint(&self, method: &Method, path: &str) -> Result<Option<Endpoint>, Page> {
        if path == LOGIN_PATH {
            return if method == Method::POST { Ok(None) } else { Err(refusal::method_not_allowed()) };
        }
        let paths = &self.settings.paths;
        match paths.find(method, path) {
            None if paths.at(path).next().is_some() => Err(refusal::method_not_allowed()),
            None => Err(refusal::not_found()),
            found => Ok(found),
        }
    }

    /// §5: one 401 for every cause.
    fn authenticate(
        &self,
        kind: AuthKind,
        incoming: &IncomingRequest,
        now: Duration,
    ) -> Result<Caller, Page> {
        let header = incoming.authorization.as_deref().and_then(|header| header.strip_prefix("Bearer "));
        let header = header.ok_or_else(refusal::unauthorized)?;
        let caller = match kind {
            AuthKind::ApiKey => self.directory.by_api_key(header).map(|user| Caller { user, session: None }),
            AuthKind::Full | AuthKind::None => header.split_once(':').and_then(|(api_key, token)| {
                let user = self.directory.by_api_key(api_key)?;
                let session = self.sessions.find(token, now).filter(|session| session.user == user)?;
                Some(Caller { user, session: Some(session) })
            }),
        };
        caller.ok_or_else(refusal::unauthorized)
    }

    /// §1: form bodies on POST and PUT; GET and DELETE need no `Content-Type` and have no body.
    fn read_form(&self, passage: &Passage<'_>) -> Result<Form, Page> {
        let incoming = passage.incoming;
        if !matches!(incoming.method, Method::POST | Method::PUT) {
            return Ok(Form::new());
        }
        let content_type = incoming.content_type.as_deref().unwrap_or_default();
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(match self.settings.interpretation.json_body {
                JsonBody::BadRequest => refusal::bad_request(),
                JsonBody::UnsupportedMediaType => refusal::unsupported_media_type(),
            });
        }
        match &incoming.body {
            Ok(body) => Form::parse(body).map_err(|_| refusal::bad_request()),
            Err(UnreadBody::TooLarge | UnreadBody::Broken) => Err(refusal::bad_request()),
        }
    }

    /// §8: admitted by all zones, or counted in none.
    fn count(&mut self, passage: &mut Passage<'_>, form: Option<&Form>) -> Result<(), Page> {
        let jitter = self.settings.accounting_jitter.mul_f64(if self.settings.accounting_jitter.is_zero() {
            0.0
        } else {
            self.draw.fraction("accounting-jitter", &self.record.requests.to_string())
        });
        passage.accounted = passage.now.saturating_add(jitter);
        let keys: Vec<Key> = passage
            .zones
            .iter()
            .filter_map(|&zone| self.holder(zone, passage, form).map(|holder| Key { zone, holder }))
            .collect();
        if passage.now < self.storm_until {
            return Err(refusal::too_many_requests());
        }
        let strike = self.strike(Stage::Quota, passage);
        match strike.map(|strike| strike.fault) {
            Some(Fault::QuotaForeign) => {
                for _ in 0..self.quota_of_a_second(passage) {
                    self.quotas.count_foreign(&keys, passage.accounted);
                }
            }
            Some(Fault::QuotaHalved) => self.quotas.halve(),
            Some(Fault::QuotaLowered) => self.quotas.lower(),
            Some(Fault::QuotaStorm) => return Err(refusal::too_many_requests()),
            Some(Fault::QuotaStormRetryAfter) => {
                return Err(come_back_after("2".into()));
            }
            Some(Fault::QuotaStormAbsurd) => {
                return Err(come_back_after(ABSURD.into()));
            }
            Some(Fault::QuotaStormRetryAfterZero) => return Err(come_back_after("0".into())),
            Some(Fault::QuotaStormRetryAfter60) => return Err(come_back_after("60".into())),
            Some(Fault::QuotaStormRetryAfterDate) => {
                let date = UNIX_EPOCH + self.wall(passage.now + Duration::from_secs(2)).min(LAST_DATE);
                return Err(come_back_after(httpdate::fmt_http_date(date).into()));
            }
            Some(Fault::QuotaStormRetryAfterGarbage) => return Err(come_back_after(GARBAGE.into())),
            Some(Fault::QuotaStormMinute) => {
                self.storm_until = passage.now.saturating_add(Duration::from_secs(60));
                return Err(refusal::too_many_requests());
            }
            _ => {}
        }
        self.quotas.admit(&keys, passage.accounted).map_err(|over| {
            passage.refused_by = Some(over.zone);
            match self.retry_after(over) {
                Some(wait) => come_back_after(wait),
                None => refusal::too_many_requests(),
            }
        })?;
        if self.settings.counted_after_answer.is_some() {
            passage.uncounted = keys;
        }
        Ok(())
    }

    fn holder(&self, zone: Zone, passage: &Passage<'_>, form: Option<&Form>) -> Option<String> {
        match Quotas::scope(zone) {
            Scope::ClientIp => Some(passage.incoming.peer.to_string()),
            Scope::ApiKey => match passage.caller {
                Some(caller) => Some(self.directory.user(caller.user).app.api_key.clone()),
                None => {
                    let key = form.unwrap_or(&passage.query).get("client_id")?;
                    // A text that cannot be a key is counted too, but shortened to save memory.
                    Some(key.chars().take(LONGEST_KEY).collect())
                }
            },
            _ => passage.caller.and_then(|caller| caller.session).map(|session| session.number.to_string()),
        }
    }

    fn quota_of_a_second(&self, passage: &Passage<'_>) -> u32 {
        let zones = steadfast_spec::zones();
        let windows =
            zones.iter().filter(|spec| passage.zones.contains(&spec.zone)).flat_map(|spec| &spec.windows);
        windows.map(|window| window.limit().get()).min().unwrap_or_default()
    }

    fn retry_after(&self, over: OverQuota) -> Option<Cow<'static, str>> {
        match self.settings.interpretation.retry_after {
            RetryAfter::Absent => None,
            RetryAfter::Seconds => {
                let seconds = over.retry_after.as_secs() + u64::from(over.retry_after.subsec_nanos() > 0);
                Some(seconds.to_string().into())
            }
            RetryAfter::Absurd => Some(ABSURD.into()),
            RetryAfter::Garbage => Some(GARBAGE.into()),
        }
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
            (Some(_), None) => refusal::unauthorized().into(),
        }
    }

    fn spoil_credentials(&mut self, passage: &mut Passage<'_>) -> Result<(), Page> {
        if self.plan.is_empty() {
            return Ok(());
        }
        let Ok(caller) = self.authenticate(AuthKind::Full, passage.incoming, passage.now) else {
            return Ok(());
        };
        let Some(strike) = self.strike(Stage::Credentials, passage) else { return Ok(()) };
        match strike.fault {
            Fault::Auth401 => return Err(refusal::unauthorized()),
            Fault::Auth403 => return Err(refusal::forbidden()),
            Fault::AuthAllTokensRevoked => self.sessions.revoke_all(),
            Fault::AuthSessionEvicted => self.sessions.evict_oldest(caller.user),
            Fault::AuthIpRemoved => {
                let peer = passage.incoming.peer;
                let whitelist = &mut self.directory.user_mut(caller.user).app.whitelist;
                whitelist.get_or_insert_default().remove(&peer);
            }
            _ => {
                let header = passage.incoming.authorization.as_deref().unwrap_or_default();
                if let Some((_, token)) = header.split_once(':') {
                    self.sessions.revoke(token);
                }
            }
        }
        Ok(())
    }

    /// Applies the faults that strike after a request was executed.
    fn corrupt(&mut self, reply: Reply, passage: &mut Passage<'_>) -> Reply {
        let Reply { after, action: Action::Respond(page) } = reply else { return reply };
        let strike = self.strike(Stage::Answer, passage);
        let action = match strike.map(|strike| strike.fault) {
            None => Action::Respond(page),
            Some(Fault::ConnectionResetAfter) => Action::Reset,
            // There is no body to break off, so the connection is reset.
            Some(Fault::ConnectionResetMidBody) if page.is_empty() => Action::Reset,
            Some(Fault::ConnectionResetMidBody) => Action::Respond(page.cut_in_half()),
            Some(fault) if fault.group() == "answer" => Action::Respond(corrupt(fault, page)),
            Some(fault) if fault.group() == "transport" => {
                let Some(strike) = strike else { return Reply { after, action: Action::Respond(page) } };
                return Reply { after, ..self.corrupted(strike, page, passage) };
            }
            Some(_) => {
                // From ten seconds behind to ten ahead.
                let skew = i8::try_from(self.draw.below("date-skew", &passage.key, 21)).unwrap_or_default();
                Action::Respond(Page { date_skew: skew - 10, ..page })
            }
        };
        Reply { after, action }
    }

    /// Returns an answer whose bytes the fault changes.
    pub(crate) fn corrupted(&self, strike: Strike, page: Page, passage: &Passage<'_>) -> Reply {
        let chance = self.draw.below("at-byte", &passage.key, u64::MAX);
        let corrupted = Corrupted { fault: strike.fault, page, at_byte: strike.at_byte, chance };
        Reply { after: Duration::ZERO, action: Action::Corrupt(corrupted) }
    }

    /// Returns the fault that strikes the request at this stage, if one does.
    pub(crate) fn strike(&mut self, stage: Stage, passage: &mut Passage<'_>) -> Option<Strike> {
        if self.plan.is_empty() {
            return None;
        }
        let target = Target {
            endpoint: passage.endpoint,
            intent: passage.incoming.intent.as_deref(),
            attempt: passage.attempt,
            key: &passage.key,
        };
        let strike = self.plan.strike(stage, target, self.draw)?;
        passage.faults.push(strike.fault.as_str());
        passage.answer_after = strike.answer_after.or(passage.answer_after);
        Some(strike)
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

/// No API key is longer.
const LONGEST_KEY: usize = 64;
/// An absurd `Retry-After`: eleven days.
const ABSURD: &str = "999999";
/// A `Retry-After` that is neither a number nor a date.
const GARBAGE: &str = "soon";

fn come_back_after(wait: Cow<'static, str>) -> Page {
    Page { hint: Some(Hint::RetryAfter(wait)), ..refusal::too_many_requests() }
}

pub(crate) fn nanos(at: Duration) -> u64 {
    u64::try_from(at.as_nanos()).unwrap_or(u64::MAX)
}

/// §7, 400: a malformed URL. Escapes must be complete, and decode to UTF-8 without control characters.
fn is_well_formed(path: &str) -> bool {
    let bytes = path.as_bytes();
    let escapes_are_whole = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(i, _)| {
        bytes.get(i + 1).is_some_and(u8::is_ascii_hexdigit)
            && bytes.get(i + 2).is_some_and(u8::is_ascii_hexdigit)
    });
    escapes_are_whole
        && percent_decode_str(path).decode_utf8().is_ok_and(|text| !text.chars().any(char::is_control))
}

/// Returns the page of a fault that answers with a 5xx, or with the ambiguous 400.
pub(crate) fn fault_page(fault: Fault) -> Option<Page> {
    use steadfast_spec::msg;
    let name = fault.as_str().split_once('.').map_or("", |(_, name)| name);
    let (status, msg) = match name.split('-').next() {
        Some("504") => (StatusCode::GATEWAY_TIMEOUT, msg::GATEWAY_TIMED_OUT),
        Some("502") => (StatusCode::BAD_GATEWAY, msg::BAD_GATEWAY),
        Some("500") => (StatusCode::INTERNAL_SERVER_ERROR, msg::INTERNAL_SERVER_ERROR),
        Some("503") => (StatusCode::SERVICE_UNAVAILABLE, msg::SERVICE_UNAVAILABLE),
        Some("429") => (StatusCode::TOO_MANY_REQUESTS, msg::TOO_MANY_REQUESTS),
        Some("403") => (StatusCode::FORBIDDEN, msg::FORBIDDEN),
        Some("401") => (StatusCode::UNAUTHORIZED, msg::UNAUTHORIZED),
        Some("400") => (StatusCode::BAD_REQUEST, msg::INTERNAL_ERROR),
        _ => return None,
    };
    Some(Page::error(status, msg))
}
