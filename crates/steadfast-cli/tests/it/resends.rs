//! Whether and when an order leaves a second time, as an operator says.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, documented, listed, placed},
};

/// Regression: the sidecar had no such setting, so that behind a service mesh an order could exist twice.
#[cfg(unix)]
#[tokio::test]
async fn c03_never_resend_holds_for_the_sidecar_by_its_config_file() {
    use std::os::unix::fs::PermissionsExt;

    use crate::proxy::{RunningProxy, private_folder};

    let gateway = OwnGateway::serve(|_| documented(504)).await;
    let state = private_folder();
    let file = state.path().join("steadfast.toml");
    std::fs::write(&file, "[proxy]\nnever-resend = true\nport = 0\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let command = |args: &[&str]| {
        let mut command = gateway.command(args);
        command.env("XDG_STATE_HOME", state.path()).env("STEADFAST_CONFIG", &file);
        command
    };
    for verb in [&["proxy"][..], &["exec"]] {
        let words =
            [verb, &["--print-config"], if verb == ["exec"] { &["--", "true"] } else { &[] }].concat();
        let (stdout, stderr) = said(&command(&words).output().await.unwrap());
        let line = stdout.lines().find(|line| line.contains("never-resend"));
        assert!(line.is_some_and(|line| line.contains("true")), "{stdout}{stderr}");
        assert!(stdout.lines().any(|line| line.contains("refusal-lag")), "{stdout}{stderr}");
    }
    let proxy = RunningProxy::start(command(&["proxy", "--json"])).await;
    let answer = proxy.order("").await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert_eq!(gateway.orders().len(), 1, "{answer}");
}

/// Returns a service that refuses the first order and lists it all the same, 3 s later.
async fn listing_a_refused_order_late() -> OwnGateway {
    let (refused, since) = (Arc::<OnceLock<Instant>>::default(), Duration::from_secs(3));
    let shown = refused.clone();
    let answer = move |number| match number {
        0 => {
            refused.get_or_init(Instant::now);
            documented(429)
        }
        _ => placed("260000000002", "Order placed"),
    };
    let list = move |sent: usize| {
        let is_shown = shown.get().is_some_and(|at| at.elapsed() > since);
        let (late, other) = (listed("260000000001", 1), listed("260000000002", 1));
        let all = [(is_shown, late), (sent > 1, other)].into_iter().filter(|(shown, _)| *shown);
        serde_json::Value::from_iter(all.map(|(_, order)| order)).to_string()
    };
    OwnGateway::with_list(answer, list).await
}

/// Regression: the list that confirms a refusal was read a second after it, and `replay` had no option to wait longer.
#[tokio::test]
async fn o05_a_longer_refusal_lag_sends_no_order_again_that_is_listed_late() {
    for (more, sent, code) in [(&["--refusal-lag", "6"][..], 1, 0), (&[], 2, 6)] {
        let (gateway, file) = (listing_a_refused_order_late().await, orders(1));
        let args = [&["replay", file.path(), "--yes"], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!((gateway.orders().len(), output.status.code()), (sent, Some(code)), "{stdout}{stderr}");
    }
    for wrong in ["0", "16", "x"] {
        let file = orders(1);
        let output = crate::command::output(&["replay", file.path(), "--refusal-lag", wrong]).await;
        assert_eq!(output.status.code(), Some(2), "{wrong}: {:?}", said(&output));
    }
}
