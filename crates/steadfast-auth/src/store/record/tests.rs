use proptest::prelude::*;

use super::*;
use crate::store::StoreError;

fn record() -> Record {
    let secret = SecretString::from("t0k3n");
    let life = Some(Duration::from_secs(60));
    let (worked, refused) = (true, true);
    let (refused_at, next_login) = (Some(60_000), Some(120_000));
    let token = StoredToken { serial: 3, secret, issued: 5, life, worked, refused, refused_at, next_login };
    Record { revision: 7, token: Some(token), steps: vec![1, 2], ..Record::default() }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let bytes = record().encode();
    let read = Record::decode(bytes.expose_secret(), "x").unwrap();
    assert_eq!(read.encode().expose_secret(), bytes.expose_secret());
    assert_eq!((read.revision(), read.serial(), &read.steps), (7, 3, &vec![1, 2]));
    assert_eq!(read.token.as_ref().unwrap().expires(), Some(60_005));
    assert_eq!(read.summary().renewed_at, SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(120)));
}

#[test]
fn another_version_is_told_from_a_torn_record() {
    let version = Record::decode(br#"{"version":7,"x":1}"#, "x").unwrap_err();
    assert!(matches!(version, StoreError::UnknownVersion { version: 7, .. }));
    for torn in [&b""[..], b"{}", b"{\"version\":1}", b"null", b"\xff"] {
        assert!(matches!(Record::decode(torn, "x"), Err(StoreError::Garbled { .. })));
    }
}

/// A record as version 0.1 wrote it.
#[test]
fn the_failures_of_an_older_record_count_for_the_account() {
    let older =
        br#"{"version":1,"revision":7,"account":null,"token":{"serial":3,"access_token":"t","issued_ms":5,
        "life_ms":60000,"worked":true},"failures":{"credentials":{"salt":"00","hash":"00"},"spent":2,
        "latched":true},"unknown_ms":[],"totp_steps":[1],"sessions_ms":[],"suspected_ms":null}"#;
    let record = Record::decode(older, "x").unwrap();
    let summary = record.summary();
    assert_eq!((summary.failures, summary.failures_of_credentials, summary.latched), (2, 2, true));
    assert!(!summary.needs_reset && record.serial() == 3);
}

#[test]
fn debug_does_not_show_the_token() {
    assert!(!format!("{:?} {:?}", record(), record().summary()).contains("t0k"));
}

proptest! {
    /// A cut record is never decoded in part.
    #[test]
    fn a_torn_record_is_never_read(cut in 0_usize..200) {
        let bytes = record().encode();
        let bytes = bytes.expose_secret();
        prop_assume!(cut < bytes.len());
        let is_garbled = matches!(Record::decode(&bytes[..cut], "x"), Err(StoreError::Garbled { .. }));
        prop_assert!(is_garbled);
    }
}
