//! §8 Limits: the scope of each quota.

use steadfast_spec::Zone;

use crate::{
    endpoints::INDIVIDUAL_TOKEN,
    world::{A_MINUTE, World, ip, per_second},
};

/// The zones whose quota belongs to the auth token.
const BY_TOKEN: [Zone; 3] = [Zone::DATA, Zone::PLACE_ORDER, Zone::GENERAL];

#[tokio::test(start_paused = true)]
async fn spec_8_token_quotas_belong_to_the_token() {
    for zone in BY_TOKEN {
        let world = World::new();
        let second = world.log_in().await;
        world.pass(A_MINUTE);
        world.exhaust(zone).await;
        let probe = world.probe(zone);

        assert!(!probe.clone().peer(ip(9)).send().await.is_admitted(), "{zone:?}: same token, other address");
        let limit = per_second(zone);
        for session in [&second, &world.other.session] {
            let admitted = world.admitted_back_to_back(&probe.clone().bearer(session), limit + 1).await;
            assert_eq!(admitted, limit, "{zone:?}: each token has a quota of its own");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_the_otp_quota_belongs_to_the_ip_address() {
    let world = World::new();
    let mine = world.probe(Zone::OTP);
    let login = world.login_form().with("client_id", &world.other.client_id).with("password", "wrong");
    let key = format!("Bearer {}", world.other.api_key);
    let theirs = world.post(INDIVIDUAL_TOKEN, &login).authorization(&key);

    // Users at one address share the quota.
    let shared = ip(1);
    assert!(mine.clone().peer(shared).send().await.is_admitted());
    assert!(theirs.clone().peer(shared).send().await.is_admitted());
    assert!(mine.clone().peer(shared).send().await.is_admitted());
    assert!(!theirs.clone().peer(shared).send().await.is_admitted());
    assert!(!mine.clone().peer(shared).send().await.is_admitted());

    // One user has a quota at each address.
    for address in [ip(2), ip(3)] {
        assert_eq!(world.admitted_back_to_back(&mine.clone().peer(address), 4).await, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_the_api_key_quota_belongs_to_the_api_key() {
    let world = World::new();
    let mine = world.probe(Zone::API_KEY);
    let form = world.exchange_form("no-such-code");
    let form = form.with("client_id", &world.other.api_key).with("client_secret", &world.other.client_secret);
    let theirs = world.exchange(&form);

    // Two addresses share the quota of one key.
    assert_eq!(world.admitted_back_to_back(&mine.clone().peer(ip(1)), 60).await, 60);
    assert_eq!(world.admitted_back_to_back(&mine.clone().peer(ip(2)), 60).await, 40);
    // Another key has its own, at the same address.
    assert_eq!(world.admitted_back_to_back(&theirs.peer(ip(1)), 101).await, 100);
}

#[tokio::test(start_paused = true)]
async fn spec_8_other_traffic_does_not_consume_the_otp_quota() {
    let world = World::new();
    for (zone, count) in
        [(Zone::DATA, 100), (Zone::PLACE_ORDER, 10), (Zone::GENERAL, 10), (Zone::API_KEY, 90)]
    {
        assert_eq!(world.admitted_back_to_back(&world.probe(zone), count).await, count, "{zone:?}");
    }
    assert_eq!(world.admitted_back_to_back(&world.probe(Zone::OTP), 4).await, 3);
}
