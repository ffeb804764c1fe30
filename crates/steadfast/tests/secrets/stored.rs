//! Logins with a token file, and a client that reads it.

use steadfast::{
    Access, Client,
    auth::{ApiKey, Credentials, FileStore, IndividualLogin, TokenSource, TokenStore, TotpSecret},
    call::WallClock,
};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;

/// Logs in, wrongly and correctly; a client without a password and one of another account read the file. Returns
/// everything that can be shown of it.
pub(crate) async fn logins(store: impl Fn() -> FileStore) -> String {
    // The client below reads the machine's own clock, which stays near this one.
    let (now, start) = (WallClock::system().now(), Instant::now());
    let clock = WallClock::new(move || now + start.elapsed());
    let sandbox = Sandbox::builder().wall_clock(clock.now()).build().unwrap();
    let facts = sandbox.credentials();
    let base: steadfast::BaseUrl = facts.base_url.parse().unwrap();
    let source = |password: &str| {
        let api_key = ApiKey::new(facts.api_key.clone()).unwrap();
        let secret = TotpSecret::new(facts.totp_secret.clone()).unwrap();
        let credentials = Credentials::new(facts.client_id.clone(), password);
        let leaf = sandbox.gateway();
        let login = IndividualLogin::totp(leaf, &base, api_key.clone(), credentials, secret).unwrap();
        let shown = format!("{login:?}");
        (TokenSource::builder(api_key, login).clock(clock.clone()).store(store()).build(), shown)
    };

    // Wrong in its last character only, so that an echo of it would reveal the password.
    let (wrong, mut shown) = source(&format!("{}x", facts.password));
    let error = wrong.login().await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    shown += &format!("{error:?} {error} {cause:?} {wrong:?} {:?}", wrong.status());
    let (source, login) = source(&facts.password);
    source.login().await.unwrap();
    shown += &format!("{login} {source:?} {:?} {:?}", source.token(), source.status());

    let access = Access::stored(facts.api_key.clone(), facts.client_id.clone(), store()).unwrap();
    shown += &format!("{access:?}");
    let client = Client::builder(base.clone(), access).build_over(sandbox.gateway()).unwrap();
    shown += &format!("{:?} {client:?}", client.orders().await.unwrap());
    let stranger = Access::stored(facts.api_key.clone(), "SB0002", store()).unwrap();
    let stranger = Client::builder(base, stranger).build_over(sandbox.gateway()).unwrap();
    let error = stranger.orders().await.unwrap_err();
    shown += &format!("{error:?} {error}");
    let (summary, record) = (store().summary().await.unwrap(), store().load().await.unwrap());
    shown + &format!("{summary:?} {record:?} {:?}", store())
}
