//! How long a token is used, whatever life its record claims.

use std::time::{Duration, UNIX_EPOCH};

use steadfast::{
    Access, BaseUrl, Client, ClientBuilder, Paths,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::WallClock,
};
use tokio::time::{Instant, sleep};

use crate::{
    answers::{Answers, NO_DATA, placed, reply},
    world::{SECOND, order},
};

const HOUR: Duration = Duration::from_secs(3_600);

/// Returns a login's answer.
pub(crate) fn token(number: usize) -> String {
    format!(r#"{{"access_token":"token-{number}","token_type":"bearer","expires_in":86400,"scope":"x"}}"#)
}

fn client(gateway: &Answers) -> Client {
    access_that_logs_in(gateway).build_over(gateway.clone()).unwrap()
}

/// Returns a client's settings with a token that is renewed, by a wall clock that follows the paused one.
pub(crate) fn access_that_logs_in(gateway: &Answers) -> ClientBuilder {
    let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
    let clock = WallClock::new(move || noon + start.elapsed());
    let base: BaseUrl = "http://localhost/v2".parse().unwrap();
    let key = ApiKey::new("the-api-key").unwrap();
    let secret = TotpSecret::new("AYOJWTMM6TUYN4RMVSHYXKFE2CIFYIRL").unwrap();
    let credentials = Credentials::new("the-client", "the-password");
    let login = IndividualLogin::totp(gateway.clone(), &base, key.clone(), credentials, secret).unwrap();
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    Client::builder(base, Access::source(tokens)).paths(Paths::public())
}

#[tokio::test(start_paused = true)]
async fn no_stated_life_makes_a_storm_of_logins_or_lets_a_token_outlive_its_day() {
    // A life of seconds is used, with half a minute between logins: see `tokens_that_live_for_a_second`.
    for life in [
        "86400",
        "86401",
        "3600",
        "0",
        "-1",
        "86400.0",
        "null",
        "\"\"",
        "\"86400\"",
        "\"soon\"",
        "1e300",
        "18446744073709551615",
        "99999999999999999999999",
    ] {
        let gateway = Answers::with(move |arrival, number| match arrival.path.rsplit('/').next() {
            Some("individual-token-v2") => reply(
                200,
                format!(
                    r#"{{"access_token":"token-{number}","token_type":"bearer","expires_in":{life},"scope":"x"}}"#
                ),
            ),
            Some("place-order") => reply(200, placed(number)),
            _ => reply(200, NO_DATA),
        });
        let client = client(&gateway);
        for minute in 0..60 {
            let listed = client.orders().await;
            let logins = gateway.count("/individual-token-v2");
            assert!(logins <= 4, "{logins} logins by minute {minute} of {life}: {listed:?}");
            sleep(60 * SECOND).await;
        }
        sleep(23 * HOUR + 60 * SECOND).await;
        let before = gateway.count("/individual-token-v2");
        let ordered = client.place_order(&order("EQT_INFY_EQ_NSE")).await;
        let arrivals = gateway.arrivals();
        let at = |path: &str| arrivals.iter().rfind(|arrival| arrival.path.ends_with(path)).map(|a| a.at);
        assert!(ordered.is_ok(), "{life}: {ordered:?}");
        let (login, sent) = (at("/individual-token-v2").unwrap(), at("/place-order").unwrap());
        assert!(sent - login < 24 * HOUR, "{life}: sent with a token of {:?}", sent - login);
        assert!(gateway.count("/individual-token-v2") <= before + 1, "{life}");
        assert!(gateway.orders_sent() == 1, "{life}");
    }
}
