//! A journal is of a rehearsal or of real orders, never of both.

use std::fs;

use crate::{
    command::steadfast,
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
};

#[tokio::test]
async fn c01_a_rehearsals_journal_is_not_for_trading_nor_a_trading_one_for_rehearsals() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(2);
    let [rehearsed, other, traded] = ["rehearsed", "other", "traded"].map(|name| file.beside(name));
    let run = async |args: &[&str]| {
        let mut command = gateway.command(args);
        command.env("XDG_STATE_HOME", file.beside("state"));
        let output = command.output().await.unwrap();
        (output.status.code(), said(&output))
    };
    // By `replay`, and by a sidecar that a program of its own places orders through.
    let (code, (stdout, stderr)) = run(&["replay", file.path(), "--sandbox", "--journal", &rehearsed]).await;
    assert_eq!((code, stdout.matches("REHEARSAL: ").count()), (Some(0), 2), "{stderr}");
    let mut exec = steadfast(&["exec", "--sandbox", "--journal", &other, "--"]);
    exec.arg(env!("CARGO_BIN_EXE_steadfast")).args(["replay", file.path(), "--yes"]);
    let output = exec.args(["--journal", &file.beside("inner")]).output().await.unwrap();
    assert!(output.status.success(), "{:?}", said(&output));
    let (code, (stdout, stderr)) = run(&["replay", file.path(), "--yes", "--journal", &traded]).await;
    assert_eq!(
        (code, stdout.matches(",placed,").count(), gateway.orders().len()),
        (Some(0), 2, 2),
        "{stderr}"
    );

    let refused = async |args: &[&str], journal: &str, why: &str| {
        let before = fs::read(journal).unwrap();
        let (code, (stdout, stderr)) = run(args).await;
        assert_eq!((code, &*stdout), (Some(2), ""), "{args:?}: {stderr}");
        assert!(stderr.contains(why) && stderr.contains("nothing was sent"), "{args:?}: {stderr}");
        assert!(fs::read(journal).unwrap() == before, "{args:?}");
    };
    for journal in [&*rehearsed, &*other] {
        for args in [
            &["replay", file.path(), "--yes", "--journal", journal][..],
            &["replay", file.path(), "--sandbox", "--journal", journal],
            &["orders", "verify", "--journal", journal],
            &["exec", "--journal", journal, "--", "true"],
            &["exec", "--sandbox", "--journal", journal, "--", "true"],
        ] {
            refused(args, journal, "is of a rehearsal's orders").await;
        }
    }
    for args in [
        &["replay", file.path(), "--sandbox", "--journal", &traded][..],
        &["exec", "--sandbox", "--journal", &traded, "--", "true"],
    ] {
        refused(args, &traded, "a rehearsal needs a --journal of its own").await;
    }
    assert_eq!(gateway.orders().len(), 2);
}
