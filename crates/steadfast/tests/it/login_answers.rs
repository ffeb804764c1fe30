//! Answers to logins that are not as specified: how many logins follow, what is accepted, and what is shown.

use std::{
    error::Error,
    time::{Duration, UNIX_EPOCH},
};

use steadfast::{
    Access, BaseUrl, Client, ErrorKind, Paths,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::WallClock,
};
use tokio::time::{Instant, sleep};

use crate::{
    answers::{Answers, NO_DATA, placed, reply},
    world::{SECOND, order},
};

const PASSWORD: &str = "the-secret-password";
const TOKEN: &str = "the-secret-token";

fn client(gateway: &Answers) -> Client {
    let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
    let clock = WallClock::new(move || noon + start.elapsed());
    let base: BaseUrl = "http://localhost/v2".parse().unwrap();
    let key = ApiKey::new("the-api-key").unwrap();
    let secret = TotpSecret::new("AYOJWTMM6TUYN4RMVSHYXKFE2CIFYIRL").unwrap();
    let credentials = Credentials::new("the-client", PASSWORD);
    let login = IndividualLogin::totp(gateway.clone(), &base, key.clone(), credentials, secret).unwrap();
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    let builder = Client::builder(base, Access::source(tokens)).paths(Paths::public());
    builder.build_over(gateway.clone()).unwrap()
}

fn gateway(status: u16, login: String) -> Answers {
    Answers::with(move |arrival, number| match arrival.path.rsplit('/').next() {
        Some("individual-token-v2") => reply(status, login.clone()),
        Some("place-order") => reply(200, placed(number)),
        _ => reply(200, NO_DATA),
    })
}

/// Returns everything that a caller is shown.
fn shown(error: &steadfast::Error) -> String {
    let mut shown = format!("{error} {error:?} {:?}", error.message());
    let mut next = error.source();
    while let Some(error) = next {
        shown += &format!(" {error} {error:?}");
        next = error.source();
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_brings_no_usable_token_places_nothing_shows_nothing_and_is_asked_for_thrice_an_hour_at_most()
 {
    let token =
        |text: &str| format!(r#"{{"access_token":"{text}","token_type":"bearer","expires_in":86400}}"#);
    let error = format!(r#"{{"s":"error","msg":"wrong {PASSWORD}","d":{}}}"#, token(TOKEN));
    for (status, body, an_hour) in [
        (200, String::new(), 3),
        (200, token(""), 3),
        (200, token(&format!("{TOKEN}\\r\\nX-Header: y")), 3),
        (200, token(&format!("{TOKEN}é")), 3),
        (200, token(&format!(" {TOKEN}")), 3),
        (200, token(&TOKEN.repeat(10_000)), 3),
        (200, format!(r#"{{"access_token":"{TOKEN}","access_token":"{TOKEN}2"}}"#), 3),
        (200, r#"{"access_token":17}"#.to_owned(), 3),
        (200, error.clone(), 3),
        (201, token(TOKEN), 3),
        (302, String::new(), 3),
        (500, error.clone(), 3),
        (400, error.clone(), 1),
        (401, error.clone(), 2),
        (403, error, 1),
    ] {
        let gateway = gateway(status, body.clone());
        let client = client(&gateway);
        for _ in 0..20 {
            let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
            // An answer that proves nothing is no refusal.
            let refused = matches!(status, 400..500);
            let kind = if refused { ErrorKind::Unauthorized } else { ErrorKind::Unavailable };
            assert_eq!(error.kind(), kind, "{status} {body:.60}");
            let shown = shown(&error) + &format!("{client:?}");
            assert!(!shown.contains(PASSWORD) && !shown.contains(TOKEN), "{shown}");
            sleep(10 * SECOND).await;
        }
        assert_eq!(gateway.orders_sent(), 0, "{status} {body:.60}");
        let logins = gateway.count("/individual-token-v2");
        assert!(logins <= an_hour, "{logins} logins after {status} {body:.60}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_twice_however_long_the_program_goes_on() {
    let gateway = gateway(401, r#"{"s":"error","msg":"Unauthorized"}"#.to_owned());
    let client = client(&gateway);
    for _ in 0..7 * 24 {
        assert!(client.orders().await.is_err());
        sleep(3_600 * SECOND).await;
    }
    assert_eq!(gateway.count("/individual-token-v2"), 2);
}
