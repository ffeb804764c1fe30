//! A sidecar that begins a new journal says whose names it does not know.

use std::path::Path;

use tokio::process::Command;

use crate::{
    command::signal,
    files::said,
    own_gateway::{OwnGateway, placed},
    proxy::{RunningProxy, private_folder},
};

/// After a change of the API key or the store the names of the day were placed again without a word.
#[tokio::test]
async fn a_new_journal_beside_one_of_today_is_told() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let (state, elsewhere) = (private_folder(), private_folder());
    let command = |args: &[&str], state: &Path| -> Command {
        let mut command = gateway.command(args);
        command.env("XDG_STATE_HOME", state);
        command
    };
    let started = command(&["proxy", "--port", "0", "--json"], state.path());
    let mut proxy = RunningProxy::start(started).await;
    let answer = proxy.order("Idempotency-Key: a\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let journal = proxy.facts["token_file"].as_str().unwrap().strip_suffix(".token").unwrap().to_owned();
    signal(&proxy.child, "-TERM").await;
    proxy.child.wait().await.unwrap();

    let folder = state.path().join("steadfast");
    let [beside, apart] =
        [&*folder, elsewhere.path()].map(|folder| folder.join("other.json").to_str().unwrap().to_owned());
    let (own, other) = (state.path(), elsewhere.path());
    for (key, store, state, is_new) in [
        (None, None, own, false),
        (Some("anotherkey"), None, own, true),
        (Some("anotherkey"), None, own, false),
        (None, Some(&*beside), own, true),
        (None, Some(&*apart), own, true),
        (None, Some("in-the-working-folder.json"), other, true),
    ] {
        let mut args = vec!["exec"];
        store.iter().for_each(|store| args.extend(["--store", store]));
        args.extend(["--", "true"]);
        let mut command = command(&args, state);
        key.map(|key| command.env("STEADFAST_API_KEY", key));
        let ended = command.current_dir(&folder).output().await.unwrap();
        let (_, stderr) = said(&ended);
        assert_eq!(ended.status.code(), Some(0), "{stderr}");
        let warns =
            stderr.contains(&format!("{journal} tells of orders of today")) && stderr.contains("WARNING");
        assert_eq!(warns, is_new, "{key:?} {store:?}: {stderr}");
    }
}
