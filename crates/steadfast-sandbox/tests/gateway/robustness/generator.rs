//! Requests from valid to random bytes, as a function of a seed.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use steadfast_sandbox::PeerIp;

use crate::{client::Answer, world::World};

pub(super) const HOME: [u8; 4] = [127, 0, 0, 1];

/// SplitMix64: small, and every seed is equally good.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns true once in `n` times.
    pub(super) fn chance(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next() as u8).collect()
    }
}

const PATHS: &[&str] = &[
    "/api-gw/oauth/authorize",
    "/api-gw/oauth/login",
    "/api-gw/oauth/token",
    "/api-gw/oauth/individual-token-v2",
    "/api/oms/place-order",
    "/api/oms/orders",
    "/api/oms/history",
    "/api/oms/cancel-order",
    "/api/oms/modify-order",
    "/api/oms/margin",
    "/api/oms/basket-margin",
    "/api/mkt-data/scrips/symbol-store/%4eone",
    "/api/mkt-data/quotes",
    "/api/account/positions",
    "/api/account/holdings",
    "/api/account/funds",
    "/",
    "",
];

const FIELDS: &[&str] = &[
    "symId",
    "qty",
    "side",
    "type",
    "product",
    "validity",
    "limitPrice",
    "trigPrice",
    "orderId",
    "orders",
    "code",
    "client_id",
    "client_secret",
    "redirect_uri",
    "grant_type",
    "password",
    "twoFa",
    "twoFaTyp",
    "api_key",
    "state",
    "",
    "x",
    "%00",
    "symId ",
    "%E2%82%AC",
];

const VALUES: &[&str] = &[
    "EQT_INFY_EQ_NSE",
    "FUT_NIFTY_FUT_NFO_26Nov2026",
    "OPT_NIFTY_CE_NFO_26Nov2026_24500.5",
    "EQT_M%26M_EQ_BSE",
    "10",
    "0",
    "-1",
    "1e28",
    "79228162514264337593543950335",
    "0.0000000000000000000000000001",
    "NaN",
    "buy",
    "sell",
    "BUY",
    "limit",
    "market",
    "stoplimit",
    "stopmarket",
    "delivery",
    "intraday",
    "bracket",
    "cover",
    "cnc",
    "day",
    "ioc",
    "eos",
    "gtc",
    "DAY",
    "100.05",
    "260000000001",
    "260000000002",
    "authorization_code",
    "otp",
    "totp",
    "000000",
    "%5B%5D",
    "%5B%7B%22qty%22%3A%221%22%7D%5D",
    "%5B%5B%5B%5B",
    "",
    "%",
    "%zz",
    "%ff",
    "a+b",
    "\u{20ac}",
    "http%3A%2F%2F127.0.0.1%3A8799%2Fcallback",
    "%3Cscript%3E%22%27%26",
];

/// An order that §4.4 accepts; the generator changes some of it.
const ORDER: &[(&str, &[&str])] = &[
    ("symId", &["EQT_INFY_EQ_NSE", "FUT_NIFTY_FUT_NFO_26Nov2026", "OPT_NIFTY_PE_NFO_26Nov2026_24500"]),
    ("qty", &["1", "10.50", "79228162514264337593543950335"]),
    ("side", &["buy", "sell"]),
    ("type", &["limit", "market", "stoplimit", "stopmarket"]),
    ("product", &["delivery", "intraday", "normal", "bracket", "cover"]),
    ("validity", &["day", "ioc", "eos", "gtc"]),
    ("limitPrice", &["100.05", "0.0000000000000000000000000001"]),
    ("trigPrice", &["99", "79228162514264337593543950335"]),
];

pub(super) struct Generator {
    rng: Rng,
    keys: [String; 2],
    tokens: [String; 2],
    /// The authorization code of the latest redirect.
    code: String,
}

impl Generator {
    pub(super) fn new(rng: Rng, world: &World) -> Self {
        let (user, other) = (&world.user, &world.other);
        Self {
            rng,
            keys: [user.api_key.clone(), other.api_key.clone()],
            tokens: [user.access_token.clone(), other.access_token.clone()],
            code: String::new(),
        }
    }

    /// Keeps the parts of an answer that a later request can use.
    pub(super) fn learn(&mut self, answer: &Answer) {
        if let Some((_, code)) = answer.header("location").and_then(|to| to.split_once("code=")) {
            code.split('&').next().unwrap_or_default().clone_into(&mut self.code);
        }
    }

    /// Returns the time until the next request: mostly slow enough for the zones, sometimes none,
    /// sometimes a day.
    pub(super) fn pause(&mut self) -> Duration {
        match self.rng.below(400) {
            0 => Duration::from_secs(3_600),
            1..=100 => Duration::ZERO,
            _ => Duration::from_millis(self.rng.next() % 300),
        }
    }

    pub(super) fn request(&mut self, world: &World) -> Request<Full<Bytes>> {
        loop {
            // The gateway never sees what the HTTP library refuses to send.
            if let Some(request) = self.try_request(world) {
                return request;
            }
        }
    }

    fn try_request(&mut self, world: &World) -> Option<Request<Full<Bytes>>> {
        let path = match self.rng.below(600) {
            0 => "/api/mkt-data/scrips/symbol-store/NSE%5fEQ",
            1 => "/api/mkt-data/scrips/master",
            // Mostly orders and lists.
            2..=300 => *self.rng.pick(&["/api/oms/place-order", "/api/oms/orders", "/api/oms/cancel-order"]),
            _ => *self.rng.pick(PATHS),
        };
        let method = self.method(path);
        let headers = self.headers(path);
        let query = self.query(path);
        let mut target = format!("/v2{path}{query}").into_bytes();
        if self.rng.chance(15) {
            self.mutate(&mut target);
        }
        let uri = http::Uri::try_from(target).ok()?;
        let mut request = Request::builder().method(method).uri(uri);
        let body = self.body(path, world);
        for (name, value) in headers {
            request = request.header(name, HeaderValue::from_bytes(&value).ok()?);
        }
        let peer = if self.rng.chance(10) { [10, 0, 0, self.rng.next() as u8] } else { HOME };
        request.extension(PeerIp(IpAddr::from(peer))).body(body.into()).ok()
    }

    /// Returns mostly the method of the path.
    fn method(&mut self, path: &str) -> Method {
        if self.rng.chance(20) {
            let methods = [
                "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get", "X-Y",
            ];
            return self.rng.pick(&methods).parse().unwrap_or(Method::GET);
        }
        match path {
            "/api/oms/cancel-order" => Method::DELETE,
            "/api/oms/modify-order" => Method::PUT,
            path if ["login", "token", "-v2", "-order", "margin"].iter().any(|end| path.ends_with(end)) => {
                Method::POST
            }
            _ => Method::GET,
        }
    }

    /// Returns mostly the query that the path needs, sometimes nothing, sometimes anything.
    fn query(&mut self, path: &str) -> String {
        match (path, self.rng.below(4)) {
            (_, 0) => format!("?{}", self.fields(4)),
            ("/api-gw/oauth/authorize", _) => {
                format!("?client_id={}&state={}", self.keys[0], self.rng.pick(VALUES))
            }
            ("/api/oms/cancel-order", _) => format!("?orderId=26{:010}", self.rng.below(40)),
            ("/api/mkt-data/quotes", _) => format!("?symId={}", self.rng.pick(VALUES)),
            _ => String::new(),
        }
    }

    fn headers(&mut self, path: &str) -> Vec<(&'static str, Vec<u8>)> {
        let mut headers = Vec::new();
        let authorization = match self.rng.below(50) {
            0 => None,
            1 => Some(self.rng.bytes(60)),
            2 => Some(b"Bearer".to_vec()),
            3 => Some(b"Bearer :".to_vec()),
            4 => Some(format!("bearer {}:{}", self.keys[0], self.tokens[0]).into_bytes()),
            5 => Some(format!("Bearer {}:{}", self.keys[0], self.tokens[1]).into_bytes()),
            6..=9 => Some(format!("Bearer {}:{}", self.keys[1], self.tokens[1]).into_bytes()),
            _ if path.ends_with("token-v2") => Some(format!("Bearer {}", self.keys[0]).into_bytes()),
            _ => Some(format!("Bearer {}:{}", self.keys[0], self.tokens[0]).into_bytes()),
        };
        headers.extend(authorization.map(|value| ("authorization", value)));
        let content_type: Option<&[u8]> = match self.rng.below(16) {
            0 => None,
            1 => Some(b"application/json"),
            2 => Some(b"text/\xff"),
            3 => Some(b"Application/X-WWW-Form-Urlencoded ; charset=utf-8"),
            _ => Some(b"application/x-www-form-urlencoded"),
        };
        headers.extend(content_type.map(|value| ("content-type", value.to_vec())));
        if self.rng.chance(30) {
            headers.push((
                *self.rng.pick(&["authorization", "content-type", "x-test-intent"]),
                b"second".to_vec(),
            ));
        }
        if self.rng.chance(2) {
            let intent =
                if self.rng.chance(40) { self.rng.bytes(400) } else { vec![b'a' + self.rng.below(20) as u8] };
            headers.push(("x-test-intent", intent));
        }
        headers
    }

    fn body(&mut self, path: &str, world: &World) -> Vec<u8> {
        let is_login = path.starts_with("/api-gw");
        let mut body = match self.rng.below(10) {
            0 => Vec::new(),
            1 => self.rng.bytes(80),
            2 => self.fields(10).into_bytes(),
            3 => self.login(world).into_bytes(),
            _ if path.ends_with("/token") => self.exchange(world).into_bytes(),
            _ if is_login => self.login(world).into_bytes(),
            _ => self.order().into_bytes(),
        };
        if self.rng.chance(15) {
            self.mutate(&mut body);
        }
        if self.rng.chance(300) {
            body.resize(70 * 1024, b'a');
        }
        body
    }

    fn fields(&mut self, most: usize) -> String {
        let fields: Vec<String> = (0..=self.rng.below(most))
            .map(|_| format!("{}={}", self.rng.pick(FIELDS), self.rng.pick(VALUES)))
            .collect();
        fields.join(*self.rng.pick(&["&", "&", "&", "&&", ";", "="]))
    }

    fn order(&mut self) -> String {
        let fields: Vec<String> = ORDER
            .iter()
            .filter_map(|(name, values)| {
                if self.rng.chance(40) {
                    return None;
                }
                let value = if self.rng.chance(40) { self.rng.pick(VALUES) } else { self.rng.pick(values) };
                Some(format!("{name}={value}"))
            })
            .collect();
        fields.join("&")
    }

    fn login(&mut self, world: &World) -> String {
        let user = if self.rng.chance(4) { &world.other } else { &world.user };
        let code = match self.rng.below(4) {
            0 => world.sandbox.send_otp(&user.client_id).unwrap_or_default(),
            1 => world.sandbox.other_totp_now(),
            _ => world.sandbox.totp_now(),
        };
        let kind = self.rng.pick(&["otp", "totp", "totp", "sms"]);
        let (client_id, password, api_key) = (&user.client_id, &user.password, &user.api_key);
        format!("api_key={api_key}&client_id={client_id}&password={password}&twoFa={code}&twoFaTyp={kind}")
    }

    fn exchange(&mut self, world: &World) -> String {
        let (code, key, secret) = (&self.code, &world.user.api_key, &world.user.client_secret);
        let redirect_uri = "http%3A%2F%2F127.0.0.1%3A8799%2Fcallback";
        format!(
            "code={code}&client_id={key}&client_secret={secret}&redirect_uri={redirect_uri}&grant_type=authorization_code"
        )
    }

    /// Changes, inserts or removes a few bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.rng.below(4) {
            let at = self.rng.below(bytes.len() + 1);
            match self.rng.below(3) {
                0 => bytes.insert(at, self.rng.next() as u8),
                1 if at < bytes.len() => bytes[at] ^= 1 << self.rng.below(8),
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
    }
}
