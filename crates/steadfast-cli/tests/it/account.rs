//! An account at a running sandbox, and its owner's commands.

use std::{path::PathBuf, process::Output};

use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    command::{RunningSandbox, steadfast},
    readme::exchange,
};

pub(crate) struct User {
    pub(crate) sandbox: RunningSandbox,
    home: TempDir,
}

impl User {
    pub(crate) async fn new() -> Self {
        Self { sandbox: RunningSandbox::start(&[]).await, home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.home.path().join("auth.json")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Returns the command with only the account's secrets in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = steadfast(args);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("STEADFAST_BASE_URL", self.sandbox.fact("base_url")).env("STEADFAST_STORE", self.store());
        for name in ["api_key", "client_id", "password"] {
            command.env(format!("STEADFAST_{}", name.to_uppercase()), self.sandbox.fact(name));
        }
        command
    }

    /// Returns the command as [`command`](User::command) does, with the authenticator's secret.
    pub(crate) fn totp(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.env("STEADFAST_TOTP_SECRET", self.sandbox.fact("totp_secret"));
        command
    }

    /// Returns how many requests the service has answered with 429.
    pub(crate) async fn refused(&self) -> u64 {
        let state = self.state().await;
        state["refusals"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    }

    async fn state(&self) -> serde_json::Value {
        let admin = self.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
        let (_, state) = exchange(admin, "/state", "", None).await;
        serde_json::from_str(&state).unwrap()
    }

    /// Returns the numbers of successful and failed logins, as the service counts them.
    pub(crate) async fn logins(&self) -> (u64, u64) {
        let state = self.state().await;
        (state["logins"]["succeeded"].as_u64().unwrap(), state["logins"]["failed"].as_u64().unwrap())
    }
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the authenticator's current code.
pub(crate) fn totp(secret: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let now = steadfast_call::WallClock::system().now();
    let step = now.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs() / 30;
    let key = data_encoding::BASE32_NOPAD.decode(secret.as_bytes()).unwrap();
    let mut mac = Hmac::<sha1::Sha1>::new_from_slice(&key).unwrap();
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 15);
    let word = u32::from_be_bytes(digest[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}
