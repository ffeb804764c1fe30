//! A sidecar that starts on a full disk: a file system of its own, which a test fills.

use std::{fs::File, path::Path, time::Duration};

use tokio::process::Command;

use crate::{
    command::signal,
    not_ready::{ready, until_ready},
    own_gateway::{OwnGateway, placed},
    proxy::{RunningProxy, get},
};

/// Puts a full disk with the same files in the place of `$STATE`, for the programs of this shell alone. A file at `$ROOM` makes
/// room.
const FULL: &str = "\
mount -t tmpfs -o size=256k none \"$DISK\" && cp -a \"$STATE/.\" \"$DISK\" && mount --bind \"$DISK\" \"$STATE\" || exit 99
head -c 1m /dev/zero >\"$STATE/filling\" 2>/dev/null
(while kill -0 $$ && ! test -e \"$ROOM\"; do sleep 0.1; done; rm \"$STATE/filling\") >/dev/null 2>&1 &
";

const SKIPPED: &str = "skipped: this machine lets nobody mount a disk of his own";

/// The files of one account, which its sidecars use one after the other.
struct Account(tempfile::TempDir);

impl Account {
    /// Returns an account whose first sidecar has placed an order under the name `a`; `None` if this machine lets nobody mount
    /// a disk.
    async fn with_an_order(gateway: &OwnGateway) -> Option<Self> {
        let account = Self(tempfile::tempdir().unwrap());
        for folder in ["state", "disk"] {
            std::fs::create_dir(account.path(folder)).unwrap();
        }
        if account.on_a_full_disk(gateway, "true").status().await.unwrap().code() != Some(0) {
            return None;
        }
        let mut command = gateway.command(&["proxy", "--port", "0", "--json"]);
        command.env("XDG_STATE_HOME", account.path("state"));
        let mut proxy = RunningProxy::start(command).await;
        assert!(proxy.order("Idempotency-Key: a\r\n").await.starts_with("HTTP/1.1 200"));
        signal(&proxy.child, "-TERM").await;
        assert_eq!(proxy.child.wait().await.unwrap().code(), Some(0));
        Some(account)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Returns a shell command whose `$0` is the command that is tested.
    fn on_a_full_disk(&self, gateway: &OwnGateway, shell: &str) -> Command {
        let mut command = gateway.shell("unshare");
        command.args(["-rm", "sh", "-c", &format!("{FULL}{shell}"), env!("CARGO_BIN_EXE_steadfast")]);
        for (name, file) in
            [("XDG_STATE_HOME", "state"), ("STATE", "state"), ("DISK", "disk"), ("ROOM", "room")]
        {
            command.env(name, self.path(file));
        }
        command.kill_on_drop(true);
        command
    }

    fn make_room(&self) {
        File::create(self.path("room")).unwrap();
    }
}

fn said(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Regression: it did not start, and no cancel got out.
#[tokio::test]
async fn a_sidecar_starts_on_a_full_disk_for_cancels_and_reads_and_trades_once_there_is_room() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let Some(account) = Account::with_an_order(&gateway).await else {
        return eprintln!("{SKIPPED}");
    };
    let stderr = account.path("stderr");
    let mut command = account.on_a_full_disk(&gateway, "exec \"$0\" proxy --port 0 --json");
    command.stderr(File::create(&stderr).unwrap());
    let mut proxy = RunningProxy::start(command).await;
    assert!(said(&stderr).contains("no order leaves until there is room"), "{}", said(&stderr));

    let told = ready(&proxy).await;
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("No space left on device"), "{told}");
    for _ in 0..2 {
        let refused = proxy.order("Idempotency-Key: b\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("journal cannot write"), "{refused}");
    }
    let known = proxy.order("Idempotency-Key: a\r\n").await;
    assert!(known.starts_with("HTTP/1.1 200"), "what the journal holds is known: {known}");
    assert_eq!(gateway.orders().len(), 1);
    let list = get(proxy.authority(), "/v2/api/oms/orders", proxy.token()).await;
    assert!(list.starts_with("HTTP/1.1 200"), "{list}");
    let cancelled = proxy.cancel("20").await;
    assert!(cancelled.starts_with("HTTP/1.1 200"), "{cancelled}");
    assert_eq!(gateway.all().iter().filter(|asked| asked.method == "DELETE").count(), 1);

    account.make_room();
    tokio::time::timeout(Duration::from_secs(30), until_ready(&proxy))
        .await
        .expect("it finds the room by itself");
    for _ in 0..2 {
        let answer = proxy.order("Idempotency-Key: b\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(gateway.orders().len(), 2);
    signal(&proxy.child, "-TERM").await;
    assert_eq!(proxy.child.wait().await.unwrap().code(), Some(0), "{}", said(&stderr));
}

#[tokio::test]
async fn a_program_is_run_on_a_full_disk_and_a_file_of_orders_is_not() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let Some(account) = Account::with_an_order(&gateway).await else {
        return eprintln!("{SKIPPED}");
    };
    let stderr = account.path("stderr");
    let exec = "\"$0\" exec -- true";
    let mut command = account.on_a_full_disk(&gateway, exec);
    let ended = command.stderr(File::create(&stderr).unwrap()).status().await.unwrap();
    assert_eq!(ended.code(), Some(0), "{}", said(&stderr));
    assert!(said(&stderr).contains("no order leaves until there is room"), "{}", said(&stderr));

    let orders = crate::files::orders(2);
    let replay = "\"$0\" replay \"$1\" --yes --journal \"$STATE/steadfast/\"*.proxy.journal";
    let mut command = account.on_a_full_disk(&gateway, replay);
    let ended = command.arg(orders.path()).stderr(File::create(&stderr).unwrap()).status().await.unwrap();
    assert_eq!(ended.code(), Some(2), "{}", said(&stderr));
    assert!(said(&stderr).contains("No space left on device"), "{}", said(&stderr));
    assert_eq!(gateway.orders().len(), 1);
}
