//! One sidecar for an account on a machine, whatever the folders and variables of two.

use tokio::process::Command;

use crate::{
    command::{RunningSandbox, steadfast},
    proxy::{RunningProxy, of, private_folder},
};

/// Returns what is said at a start that has to be refused.
async fn refused(mut command: Command) -> String {
    let output = tokio::time::timeout(std::time::Duration::from_secs(20), command.output());
    let output = output.await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// Regression: both ran, the service answered 429, and one name was placed twice.
#[tokio::test]
async fn a_second_one_is_refused_whatever_its_folders_and_variables() {
    let sandbox = RunningSandbox::start(&[]).await;
    let [state, other, runtime] = [(); 3].map(|()| private_folder());
    let mut first = RunningProxy::start(of(&sandbox, state.path())).await;

    let mut with_user = of(&sandbox, state.path());
    with_user.env("STEADFAST_CLIENT_ID", "SB0001");
    let mut elsewhere = of(&sandbox, other.path());
    elsewhere.env("XDG_RUNTIME_DIR", runtime.path());
    let mut spelled = of(&sandbox, other.path());
    spelled
        .env("STEADFAST_BASE_URL", sandbox.fact("base_url").replace("http://127.0.0.1", "HTTP://localhost"));
    let mut exec = steadfast(&["exec", "--", "true"]);
    for (name, value) in of(&sandbox, other.path()).as_std().get_envs() {
        exec.envs(value.map(|value| (name, value)));
    }
    exec.env_remove("XDG_RUNTIME_DIR");
    for (second, what) in [(with_user, "user"), (elsewhere, "folders"), (spelled, "spelling"), (exec, "exec")]
    {
        let said = refused(second).await;
        assert!(said.contains("another sidecar of this account runs on this machine"), "{what}: {said}");
        assert!(said.contains("STEADFAST_CLIENT_ID"), "{what}: it says what to do: {said}");
    }

    // A sidecar that was killed holds nothing.
    first.child.kill().await.unwrap();
    let _next = RunningProxy::start(of(&sandbox, other.path())).await;
}

#[tokio::test]
async fn two_known_users_of_one_key_are_two_accounts() {
    let sandbox = RunningSandbox::start(&[]).await;
    let [one, other] = [(); 2].map(|()| private_folder());
    let of_user = |state: &tempfile::TempDir, user| {
        let mut command = of(&sandbox, state.path());
        command.env("STEADFAST_CLIENT_ID", user);
        command
    };
    let _first = RunningProxy::start(of_user(&one, "SB0001")).await;
    let _second = RunningProxy::start(of_user(&other, "SB0002")).await;
    let third = private_folder();
    let said = refused(of_user(&third, " sb0002 ")).await;
    assert!(said.contains("another sidecar of this account"), "{said}");
    refused(of(&sandbox, third.path())).await;
}
