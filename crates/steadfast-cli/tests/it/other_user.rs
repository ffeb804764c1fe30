//! A journal is of one user's orders.

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
};

/// Regression: rows were told as placed in an account that had no order.
#[tokio::test]
async fn c03_a_journal_of_another_user_is_refused() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(2);
    let journal = file.beside("orders.csv.journal");
    let run = async |user: Option<&str>, args: &[&str]| {
        let mut command = gateway.command(args);
        command.env("XDG_STATE_HOME", file.beside("state"));
        if let Some(user) = user {
            command.env("STEADFAST_CLIENT_ID", user);
        }
        let output = command.output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let replay = ["replay", file.path(), "--yes"];
    let (code, (stdout, stderr)) = run(Some("SB0001"), &replay).await;
    assert_eq!((code, stdout.matches(",placed,").count()), (Some(0), 2), "{stderr}");
    let verify = ["orders", "verify", "--journal", &journal];
    let exec = ["exec", "--journal", &journal, "--", "true"];
    for args in [&replay[..], &verify, &exec] {
        let (code, (stdout, stderr)) = run(Some("SB0002"), args).await;
        assert_eq!((code, &*stdout), (Some(2), ""), "{args:?}: {stderr}");
        assert!(stderr.contains("is of another user's orders: nothing was sent"), "{stderr}");
        // Another spelling is the same user, and a run without one cannot compare.
        for user in [Some(" sb0001"), None] {
            let (code, (_, stderr)) = run(user, args).await;
            assert_eq!(code, Some(0), "{args:?}: {stderr}");
        }
    }
    assert_eq!(gateway.orders().len(), 2);
}
