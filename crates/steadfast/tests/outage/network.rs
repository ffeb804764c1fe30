//! A separate network namespace, and its link.

use std::{
    env,
    process::{Command, Output},
};

/// Set inside of the network.
const INSIDE: &str = "STEADFAST_OUTAGE_INSIDE";
/// Set where a test that cannot run is a failure.
const MUST_RUN: &str = "STEADFAST_MUST_RUN";

/// Runs `test` again in a network of its own, where it continues with `body`.
///
/// Without the right to create networks the test is skipped, with a message.
pub(crate) fn run_inside<F: Future<Output = ()>>(test: &str, body: impl FnOnce() -> F) {
    if env::var_os(INSIDE).is_some() {
        ip(&["link", "set", "lo", "up"]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        return runtime.unwrap().block_on(body());
    }
    if let Some(why) = why_not() {
        let must = env::var_os(MUST_RUN).is_some();
        assert!(!must, "not run, and {MUST_RUN} is set: {why}");
        println!("NOT RUN: {test}: {why}");
        return;
    }
    let again = unshare(&env::current_exe().unwrap().display().to_string())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let Output { status, stdout, stderr } = &again;
    let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    assert!(status.success() && stdout.contains(" 1 passed"), "{stdout}{stderr}");
}

/// Returns why this machine cannot create networks, if it cannot.
pub(crate) fn why_not() -> Option<String> {
    let tried = unshare("ip").args(["link", "set", "lo", "up"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("this machine lets nobody make a network: {said}"))
        }
        Err(error) => Some(format!("`unshare` does not start: {error}")),
    }
}

/// Runs `program` in a network of its own, as its root.
pub(crate) fn unshare(program: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", program]);
    command
}

/// Takes the link down until it is set up again.
#[must_use]
pub(crate) struct Link(());

impl Link {
    pub(crate) fn down() -> Self {
        ip(&["link", "set", "lo", "down"]);
        Self(())
    }

    pub(crate) fn up(self) {
        ip(&["link", "set", "lo", "up"]);
    }
}

fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().unwrap();
    assert!(output.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
