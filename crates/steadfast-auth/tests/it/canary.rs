//! Every secret is a unique string. No piece of it may be seen anywhere but at the services.

use std::{
    collections::HashSet,
    fmt::Write as _,
    io::{self, Write as _},
    sync::{Arc, Mutex},
};

use data_encoding::BASE64;
use steadfast_auth::{
    ApiKey, AuthHeaderLayer, BrowserLogin, CodeExchange, Credentials, Grant, Identity, IndividualLogin,
    MemoryStore, OneTimeCode, RefreshLayer, Static, Stored, TokenSource, TokenStore, TotpSecret, Unrenewed,
};
use steadfast_call::BoxError;
use tower::{Layer, Service, ServiceExt};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Answer, Clock, Script, base, orders, secs};

const KEY: &str = "Kq7Xw2Vb9Zt4Rm6C";
const CLIENT: &str = "Ud8Hs3Jf5Gk1Lp0N";
const PASSWORD: &str = "Pw&=%6Yc4Tn8Bv2Mx";
const TOTP: &str = "MFRGGZDFMZTWQ2LKNNWG23TPOBYXE43U";
const TOKENS: [&str; 3] = ["Ta5Qe9Wr2Ty7Ui3Op", "Tb1As6Df8Gh4Jk0Lz", "Tc3Zx7Cv5Bn9Mq2We"];
const CODE: &str = "Cd4Rf8Vg2Bh6Nj0M";
const SECRET: &str = "Se9Dr3Ft7Gy1Hu5J";

/// Collects text.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Sink {
    fn add(&self, shown: impl std::fmt::Debug) {
        writeln!(io::BufWriter::new(self.clone()), "{shown:?} {shown:#?}").unwrap();
    }

    fn add_error(&self, error: &(dyn std::error::Error + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            self.add(error);
            self.add(error.to_string());
            next = error.source();
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Returns all forms in which `secret` might show: as it is, reversed, encoded, and each eight characters of these.
fn pieces(secret: &str) -> Vec<String> {
    let mut percent = String::new();
    for byte in secret.bytes() {
        write!(percent, "%{byte:02X}").unwrap();
    }
    let forms = [
        secret.to_owned(),
        secret.chars().rev().collect(),
        percent,
        BASE64.encode(secret.as_bytes()),
        form_text(secret),
        format!("{:?}", secret.as_bytes()).trim_matches(['[', ']']).to_owned(),
    ];
    let mut pieces = Vec::new();
    for form in forms {
        let chars: Vec<char> = form.chars().collect();
        pieces.extend(chars.windows(8).map(|window| window.iter().collect::<String>()));
    }
    pieces
}

fn form_text(secret: &str) -> String {
    steadfast_spec::Form::new().with("k", secret).encode()[2..].to_owned()
}

fn find_canary(text: &str) -> Option<String> {
    let secrets = [KEY, CLIENT, PASSWORD, TOTP, CODE, SECRET].into_iter().chain(TOKENS);
    let steps = (0..4_000).map(|n| crate::support::START_S / 30 + n);
    // A code has only six digits; the quotes keep it apart from other numbers.
    let codes = steps.map(|step| format!("\"{}\"", totp_of_canary(step)));
    let canaries: HashSet<Vec<u8>> = secrets.flat_map(pieces).chain(codes).map(String::into_bytes).collect();
    assert!(canaries.iter().all(|piece| piece.len() == 8));
    let leak = text.as_bytes().windows(8).find(|window| canaries.contains(*window));
    leak.map(|window| String::from_utf8_lossy(window).into_owned())
}

/// Returns the code that the authenticator app would show.
fn totp_of_canary(step: u64) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let key = data_encoding::BASE32_NOPAD.decode(TOTP.as_bytes()).unwrap();
    let mut mac = Hmac::<sha1::Sha1>::new_from_slice(&key).unwrap();
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 15);
    let word = u32::from_be_bytes(digest[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}

/// Takes a source through every event and shows everything that can be shown.
async fn scenario(sink: Sink, script: Vec<Answer>, api_script: Vec<Answer>) {
    let clock = Clock::new();
    let key = || ApiKey::new(KEY).unwrap();
    let credentials = || Credentials::new(CLIENT, PASSWORD);
    let secret = || TotpSecret::new(TOTP).unwrap();
    let logins = Script::new(&clock, script);
    let api = Script::new(&clock, api_script);
    let codes = || async { Ok::<_, BoxError>(OneTimeCode::new(CODE)) };

    let totp = IndividualLogin::totp(logins.clone(), &base(), key(), credentials(), secret()).unwrap();
    let otp = IndividualLogin::otp(logins.clone(), &base(), key(), credentials(), codes).unwrap();
    let oauth =
        CodeExchange::new(logins.clone(), &base(), key(), SECRET, "http://127.0.0.1/", codes).unwrap();
    sink.add((key(), credentials(), secret(), OneTimeCode::new(CODE)));
    sink.add((&totp, &otp, &oauth, Static::new(TOKENS[0])));
    let identity = Identity::new(&base().to_string(), &key(), CLIENT).with(PASSWORD);
    let browser = BrowserLogin::new(&base(), key(), "http://127.0.0.1:9/", |_| ()).unwrap();
    sink.add((&identity, identity.label(), browser, Stored::new(identity.clone()), MemoryStore::new()));
    sink.add(Grant::new(TOKENS[0], clock.wall().now()));

    let sources = [
        TokenSource::builder(key(), totp),
        TokenSource::builder(key(), otp),
        TokenSource::builder(key(), oauth),
        TokenSource::builder(key(), Static::new(TOKENS[1])),
    ];
    for builder in sources {
        sink.add(&builder);
        // The store can only be shown; its content is never read.
        let store = MemoryStore::new();
        let source = builder.clock(clock.wall()).store(store.clone()).build();
        if let Err(error) = source.login().await {
            sink.add_error(&error);
        }
        for _ in 0..4 {
            let header = AuthHeaderLayer::new(source.clone());
            let refresh = RefreshLayer::new(source.clone());
            let service = refresh.layer(header.layer(api.clone()));
            sink.add((&header, &refresh, source.token(), source.status(), &source));
            let call = service.clone().oneshot(orders());
            sink.add((&service, &call, Service::call(&mut service.clone(), orders())));
            match tokio::time::timeout(secs(200), call).await {
                Ok(Ok(response)) => {
                    sink.add(response.extensions().get::<Unrenewed>());
                    sink.add(response.headers());
                }
                Ok(Err(error)) => sink.add_error(&*error),
                Err(_) => {}
            }
            tokio::time::sleep(secs(20)).await;
        }
        source.reset();
        tokio::time::sleep(secs(1)).await;
        sink.add((&store, store.load().await.unwrap(), store.summary().await.unwrap()));
    }
}

#[tokio::test(start_paused = true)]
async fn no_piece_of_any_secret_is_shown_anywhere() {
    let sink = Sink::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(sink.clone()).finish();
    // For this thread, which also runs the tasks of the logins.
    let _captured = tracing::subscriber::set_default(subscriber);
    let (hook, panics) = (Arc::new(std::panic::take_hook()), sink.clone());
    let others = Arc::clone(&hook);
    std::panic::set_hook(Box::new(move |info| {
        panics.add((info.to_string(), std::backtrace::Backtrace::force_capture()));
        others(info);
    }));
    let good = vec![Answer::Token(TOKENS[0]), Answer::Token(TOKENS[1]), Answer::Token(TOKENS[2])];
    let torn = Answer::Body(r#"{"access_token":"Ta5Qe9Wr2Ty7Ui3Op"#);
    let logins = [
        good.clone(),
        vec![Answer::Status(401)],
        vec![Answer::Status(400)],
        vec![Answer::Status(429)],
        vec![Answer::Status(504), Answer::Lost, Answer::NotSent, torn, Answer::Token(TOKENS[0])],
        vec![Answer::Panic],
        vec![Answer::Hang],
    ];
    let calls = [
        vec![Answer::Body("{}")],
        vec![Answer::Status(401)],
        vec![Answer::Body("{}"), Answer::Status(401)],
        vec![Answer::Lost, Answer::Status(403)],
    ];
    for login in &logins {
        for call in &calls {
            scenario(sink.clone(), login.clone(), call.clone()).await;
        }
    }
    std::panic::set_hook(Box::new(move |info| hook(info)));
    let text = sink.text();
    assert!(text.contains("scripted panic"), "panics were captured");
    assert!(text.contains("logged in") && text.contains("login attempt failed"), "the log was captured");
    assert_eq!(find_canary(&text), None);
}

#[test]
fn the_canary_is_found_where_it_is() {
    for leak in [
        format!("Authorization: Bearer {KEY}:{}", TOKENS[0]),
        format!("Bearer [REDACTED]:{}", &TOKENS[1][3..12]),
        form_text(PASSWORD),
        BASE64.encode(SECRET.as_bytes()),
        CODE.chars().rev().collect(),
        format!("{:?}", CLIENT.as_bytes()),
        format!("{:?}", totp_of_canary(crate::support::START_S / 30)),
    ] {
        assert!(find_canary(&leak).is_some(), "{leak}");
    }
    assert_eq!(find_canary("login attempt failed"), None);
}
