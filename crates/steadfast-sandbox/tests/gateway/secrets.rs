//! No secret is in the ground truth, in `Debug`, or in an error.

use http::Method;
use steadfast_sandbox::Sandbox;

use crate::{
    client::Call,
    wire::Server,
    world::{EXCHANGE, MARKET, World},
};

/// Returns everything that would give access to the account.
fn secrets(world: &World) -> Vec<String> {
    let of = |user: &steadfast_sandbox::Credentials| {
        [&user.password, &user.client_secret, &user.totp_secret, &user.access_token].map(Clone::clone)
    };
    [of(&world.user), of(&world.other)].concat()
}

#[track_caller]
fn assert_hidden(secrets: &[String], text: &str) {
    for secret in secrets {
        assert!(!secret.is_empty() && !text.contains(secret.as_str()), "{secret} shows in {text}");
    }
}

/// Returns a sandbox on which every secret was used.
async fn used() -> (World, Vec<String>) {
    let world = World::of(Sandbox::builder().seed(3).lock_out_after(50));
    let mut secrets = secrets(&world);
    secrets.push(world.log_in(1).await);
    secrets.push(world.sandbox.send_otp(&world.user.client_id).expect("a known user"));
    let user = &world.user;
    let redirect_uri = "http%3A%2F%2F127.0.0.1%3A8799%2Fcallback";
    let exchange = |code: &str| {
        let (client_id, secret) = (&user.api_key, &user.client_secret);
        let form = format!(
            "code={code}&client_id={client_id}&client_secret={secret}&redirect_uri={redirect_uri}\
             &grant_type=authorization_code"
        );
        Call::new(world.sandbox.gateway(), Method::POST, EXCHANGE).form(form)
    };
    world.pass(std::time::Duration::from_secs(30));
    let login = format!(
        "api_key={}&client_id={}&password={}&twoFa={}",
        user.api_key,
        user.client_id,
        user.password,
        world.sandbox.totp_now()
    );
    let redirect = world.post("/api-gw/oauth/login", login).send().await;
    let (_, code) = redirect.header("location").and_then(|to| to.split_once("code=")).expect("a code");
    secrets.push(code.to_owned());
    let record = exchange(code).send().await.json();
    secrets.push(record["access_token"].as_str().expect("a token").to_owned());
    exchange("wrong").send().await;
    world.login_with("000000", "totp").send().await;
    world.place(MARKET).await;
    (world, secrets)
}

#[tokio::test(start_paused = true)]
async fn the_ground_truth_holds_no_secret() {
    let (world, secrets) = used().await;
    let truth = world.truth();
    assert_hidden(&secrets, &serde_json::to_string(&truth).expect("JSON"));
    assert_hidden(&secrets, &format!("{truth:#?}"));
}

#[tokio::test]
async fn the_admin_api_shows_no_secret_in_its_state() {
    let (world, secrets) = used().await;
    let server = Server::admin(&world.sandbox).await;
    let state = server.ask(&format!("GET /state HTTP/1.1\r\nhost: {}\r\n\r\n", server.address)).await;
    assert!(state.body.len() > 500);
    assert_hidden(&secrets, &String::from_utf8(state.body).expect("a text"));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn debug_shows_no_secret() {
    let (world, secrets) = used().await;
    assert_hidden(&secrets, &format!("{:#?}", world.sandbox));
    assert_hidden(&secrets, &format!("{:#?}", world.sandbox.gateway()));
    assert_hidden(&secrets, &format!("{:#?}", Sandbox::builder().seed(3)));
}

#[tokio::test(start_paused = true)]
async fn secrets_are_a_function_of_the_seed_and_differ_between_users() {
    let of = |seed: u64| secrets(&World::of(Sandbox::builder().seed(seed)));
    assert_eq!(of(1), of(1));
    let mut all = [of(1), of(2)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 16, "no two are equal");
}
