//! One window for all verbs of an account: the gateway counts by token, not by command.

use std::fs::File;

use crate::{
    account::{User, code, stderr},
    files::orders,
};

/// Regression: each journal and each verb had windows of its own, so the second run met 429s.
#[tokio::test]
async fn verbs_one_after_the_other_meet_no_429() {
    let user = User::new().await;
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    for rows in [10, 10] {
        let file = orders(rows);
        let output = user.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let journal = file.beside("orders.csv.journal");
        let journal = ["orders", "verify", "--journal", &journal];
        for args in [&journal[..], &["doctor"], &["doctor"], &["doctor"]] {
            let output = user.command(args).output().await.unwrap();
            assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        }
    }
    assert_eq!(user.refused().await, 0);
}

#[tokio::test]
async fn a_verb_beside_another_program_says_that_limits_are_not_shared() {
    const SAID: &str = "another program of this account is running";
    let (user, file) = (User::new().await, orders(1));
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let limits = user.file("auth.json.limits");
    assert_eq!(code(&user.command(&["doctor"]).output().await.unwrap()), 0);
    let before = std::fs::read(&limits).unwrap();

    let lock = File::options().write(true).open(user.file("auth.json.limits.lock")).unwrap();
    lock.lock().unwrap();
    for args in [&["doctor"][..], &["replay", file.path(), "--yes"]] {
        let output = user.command(args).output().await.unwrap();
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(SAID), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read(&limits).unwrap(), before, "the other program's file");
    drop(lock);
    let output = user.command(&["doctor"]).output().await.unwrap();
    assert!(code(&output) == 0 && !stderr(&output).contains(SAID), "{}", stderr(&output));
}
