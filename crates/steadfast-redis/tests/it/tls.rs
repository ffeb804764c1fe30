//! A store behind TLS.

use std::{fs, net::TcpListener, time::Duration};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use steadfast_limit::{Account, Lane, Quota, SECOND, Scope, Zone, ZoneLimiter};
use steadfast_redis::{Rule, Shared, StoreError};
use tempfile::TempDir;

use crate::server::Server;

#[tokio::test]
async fn a_store_with_tls_is_reached_by_those_who_trust_it_alone() {
    let folder = TempDir::new().unwrap();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("cert"), cert.pem()).unwrap();
    fs::write(path("key"), signing_key.serialize_pem()).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (tls_port, cert_file, key_file) = (port.to_string(), path("cert"), path("key"));
    let settings = [
        ("--tls-port", &*tls_port),
        ("--tls-cert-file", &*cert_file),
        ("--tls-key-file", &*key_file),
        ("--tls-auth-clients", "no"),
    ];
    let settings: Vec<_> = settings.into_iter().flat_map(|(name, value)| [name, value]).collect();
    let Some(_server) = Server::start_with(&settings).await else { return };
    let address = format!("rediss://localhost:{port}");
    let account = Account::new("SB0001");

    let strange = Shared::connect(&address, &account).await;
    assert!(matches!(&strange, Err(StoreError::Unreachable { .. })), "{strange:?}");
    let clear = Shared::connect(&address.replace("rediss", "redis"), &account).await;
    assert!(matches!(clear, Err(StoreError::Unreachable { .. })), "{clear:?}");

    let shared = Shared::connect(&address, &account).root_certificates(cert.pem()).await.unwrap();
    let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND);
    let limiter = ZoneLimiter::builder().zone(quota).build().unwrap();
    shared.has_new_token();
    let zone = shared.zone("gateway", Rule::new(&limiter.settings()[0]));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    zone.acquire(Lane::Trading, Some(deadline)).await.unwrap().settle();
}
