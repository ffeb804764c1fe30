//! Many callers that wait for one login, with every kind of end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use futures_util::future::{join_all, pending};
use http::{Request, Response, header::RETRY_AFTER};
use http_body_util::Full;
use steadfast::{
    Access, BaseUrl, BoxError, Client, Error, ErrorKind, Outcome, Paths,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::WallClock,
};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use crate::{
    answers::{Answers, NO_DATA, TRIP, placed, reply},
    world::{SECOND, order},
};

const TOKEN: &str = r#"{"access_token":"a-token","token_type":"bearer","expires_in":86400,"scope":"x"}"#;

/// The gateway's answer to a login; `None` for never.
type Login = fn(usize) -> Option<Response<Full<Bytes>>>;

fn status(status: u16) -> Option<Response<Full<Bytes>>> {
    reply(status, r#"{"s":"error","msg":"no"}"#)
}

/// Returns a client whose logins are answered by `answer`, and the count of logins.
fn client(gateway: &Answers, answer: Login) -> (Client, Arc<AtomicUsize>) {
    let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
    let clock = WallClock::new(move || noon + start.elapsed());
    let logins = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&logins);
    let transport = service_fn(move |_: Request<Full<Bytes>>| {
        let answer = answer(counted.fetch_add(1, Ordering::SeqCst) + 1);
        async move {
            sleep(10 * TRIP).await;
            match answer {
                Some(answer) => Ok::<_, BoxError>(answer),
                None => pending().await,
            }
        }
    });
    let base: BaseUrl = "http://localhost/v2".parse().unwrap();
    let key = ApiKey::new("the-api-key").unwrap();
    let secret = TotpSecret::new("AYOJWTMM6TUYN4RMVSHYXKFE2CIFYIRL").unwrap();
    let credentials = Credentials::new("the-client", "the-password");
    let login = IndividualLogin::totp(transport, &base, key.clone(), credentials, secret).unwrap();
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    let builder = Client::builder(base, Access::source(tokens)).paths(Paths::public());
    (builder.build_over(gateway.clone()).unwrap(), logins)
}

fn trading() -> Answers {
    Answers::with(|arrival, number| match arrival.path.rsplit('/').next() {
        Some("place-order") => reply(200, placed(number)),
        _ => reply(200, NO_DATA),
    })
}

/// Makes fifty calls at once, orders and reads by turns.
async fn fifty(client: &Client) -> Vec<Result<(), Error>> {
    join_all((0..50).map(|number| async move {
        match number % 2 {
            0 => client.place_order(&order(&format!("EQT_A{number}_EQ_NSE"))).await.map(drop),
            _ => client.orders().await.map(drop),
        }
    }))
    .await
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_behind_a_login_that_fails_are_all_told_and_nothing_is_sent() {
    use ErrorKind::{Unauthorized, Unavailable};
    // The login's answer, its name, and the number of logins for the first fifty calls and for fifty more.
    let cases: [(&str, Login, ErrorKind, [usize; 2]); 6] = [
        ("bad request", |_| status(400), Unauthorized, [1, 1]),
        ("denied", |_| status(403), Unauthorized, [1, 1]),
        ("wrong password", |_| status(401), Unauthorized, [2, 2]),
        ("broken", |_| status(500), Unavailable, [2, 2]),
        ("hanging", |_| None, Unavailable, [2, 2]),
        ("no token", |_| reply(200, "{}"), Unavailable, [2, 2]),
    ];
    for (name, answer, kind, [first, both]) in cases {
        let gateway = trading();
        let (client, logins) = client(&gateway, answer);
        let start = Instant::now();
        for error in fifty(&client).await.into_iter().map(Result::unwrap_err) {
            assert_eq!(error.outcome(), &Outcome::NotSent, "{name}: {error:?}");
            assert_eq!(error.kind(), kind, "{name}: {error:?}");
            assert_eq!(error.is_retryable(), kind == Unavailable, "{name}: nothing was sent");
        }
        let count = || logins.load(Ordering::SeqCst);
        assert_eq!(count(), first, "{name}, {:?}", start.elapsed());
        assert!(start.elapsed() <= 120 * SECOND, "{name}: {:?}", start.elapsed());
        let again = Instant::now();
        assert!(fifty(&client).await.iter().all(Result::is_err), "{name}");
        assert_eq!(count(), both, "{name}: two in doubt at once, one denied, two wrong");
        assert!(again.elapsed() <= 120 * SECOND, "{name}: {:?}", again.elapsed());
        assert!(gateway.arrivals().is_empty(), "{name}: {:?}", gateway.arrivals());
        assert_eq!(client.in_doubt(), 0);
        let latched = client.tokens().status().latched;
        assert_eq!(latched, ["bad request", "wrong password"].contains(&name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_behind_a_login_that_is_rate_limited_make_no_second_one_before_its_pause_is_over() {
    let gateway = trading();
    let (client, logins) = client(&gateway, |number| match number {
        1 => {
            let mut refused = status(429)?;
            refused.headers_mut().insert(RETRY_AFTER, "20".parse().unwrap());
            Some(refused)
        }
        _ => reply(200, TOKEN),
    });
    let start = Instant::now();
    // Callers that fail and call again each second must not hurry the login.
    while fifty(&client).await.iter().any(Result::is_err) {
        assert_eq!(logins.load(Ordering::SeqCst), 1, "after {:?}", start.elapsed());
        sleep(SECOND).await;
        assert!(start.elapsed() < 60 * SECOND);
    }
    assert!(start.elapsed() > 20 * SECOND, "{:?}", start.elapsed());
    assert_eq!(logins.load(Ordering::SeqCst), 2);
    assert_eq!(gateway.orders_sent(), 25, "no order was sent twice");
    assert!(!client.tokens().status().latched);
}

#[tokio::test(start_paused = true)]
async fn a_401_that_no_login_cures_costs_four_logins_an_hour_at_most_and_stops_no_reads() {
    // Reads work with every token, orders with none, for instance because this address may not trade.
    let gateway = Answers::with(|arrival, _| match arrival.path.rsplit('/').next() {
        Some("place-order") => reply(401, r#"{"s":"error","msg":"Unauthorized"}"#),
        _ => reply(200, NO_DATA),
    });
    let (client, logins) =
        client(&gateway, |number| reply(200, TOKEN.replace("a-token", &format!("t-{number}"))));
    client.orders().await.unwrap();
    for minute in 0..60 {
        let symbols: Vec<_> = (0..10).map(|number| format!("EQT_A{number}_EQ_NSE")).collect();
        let orders = symbols.iter().map(|sym_id| async { client.place_order(&order(sym_id)).await });
        for error in join_all(orders).await.into_iter().map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::Unauthorized, "minute {minute}: {error:?}");
            assert!(!error.outcome().is_unknown(), "minute {minute}: {error:?}");
        }
        client.orders().await.unwrap();
        let (count, sent) = (logins.load(Ordering::SeqCst), gateway.orders_sent());
        assert!(count <= 1 + 1 + minute / 15, "{count} logins by minute {minute}");
        assert!(
            sent <= (minute + 1) * 10 + count * 10,
            "each at most twice, and only around a login: {sent}"
        );
        sleep(60 * SECOND).await;
    }
    assert!(logins.load(Ordering::SeqCst) > 1, "a login is tried");
    assert_eq!(client.in_doubt(), 0);
}
