//! A running proxy takes over its changed config file, as a whole or not at all.

use std::{fs, path::PathBuf, time::Duration};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    command::{RunningSandbox, signal, steadfast},
    proxy::{self, FORM, RunningProxy, placed, private_folder},
};

const TOKEN: &str = "trade-0123456789abcdef";

/// A proxy of a sandbox with a config file and a file for its local token.
struct Configured {
    proxy: RunningProxy,
    folder: TempDir,
}

impl Configured {
    async fn start(text: &str, notify: Option<PathBuf>) -> Self {
        let folder = private_folder();
        let this = |name: &str| folder.path().join(name);
        fs::write(this("steadfast.toml"), text).unwrap();
        fs::write(this("token"), TOKEN).unwrap();
        for file in ["steadfast.toml", "token"] {
            fs::set_permissions(this(file), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let mut command = steadfast(&["proxy", "--sandbox", "--port", "0", "--json"]);
        command.arg("--config").arg(this("steadfast.toml")).arg("--token-file").arg(this("token"));
        command.env("NOTIFY_SOCKET", notify.unwrap_or_default());
        Self { proxy: RunningProxy::start(command).await, folder }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Returns status and body of the answer to a call of the operator's listener.
    async fn operate(&self, call: &str, token: &str) -> (String, String) {
        let admin = self.proxy.facts["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
        exchange(admin, admin, call, token, "").await
    }

    async fn reload(&self, token: &str) -> (String, String) {
        self.operate("POST /-/reload", token).await
    }

    /// Returns the status of the answer to a program's request.
    async fn ask(&self, call: &str, host: &str, token: &str) -> String {
        let body = if call.starts_with("POST") { FORM } else { "" };
        exchange(self.proxy.authority(), host, call, token, body).await.0
    }
}

async fn exchange(at: &str, host: &str, call: &str, token: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!(
        "{call} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].to_owned(), body.to_owned())
}

const LIST: &str = "GET /v2/api/oms/orders";
const ORDER: &str = "POST /v2/api/oms/place-order";

#[tokio::test]
async fn tokens_hosts_and_what_may_pass_are_changed_while_it_runs() {
    let it = Configured::start("[proxy]\ndrain = 5\n", None).await;
    let own = it.proxy.authority().to_owned();
    assert_eq!(it.ask(LIST, "steadfast:8090", TOKEN).await, "403");
    assert_eq!(it.reload(TOKEN).await.1, "config read again: nothing has changed\n");

    let reader = it.folder.path().join("reader");
    it.write(
        "steadfast.toml",
        &format!(
            "[proxy]\ndrain = 6\nallow-host = [\"steadfast:8090\"]\nread-only = true\nread-token-file = \"{}\"\n",
            reader.display()
        ),
    );
    let new = "other-0123456789abcdef";
    it.write("token", new);
    let told = it.reload(TOKEN).await;
    let words =
        "config read again: changed allow-host, drain, read-only, read-token-file, the local tokens\n";
    assert_eq!((told.0.as_str(), told.1.as_str()), ("200", words));
    assert_eq!(it.ask(LIST, "steadfast:8090", new).await, "200");
    assert_eq!(it.ask(LIST, &own, TOKEN).await, "401", "the old token");
    assert_eq!(it.ask(LIST, &own, fs::read_to_string(&reader).unwrap().trim()).await, "200");
    assert_eq!(it.ask(ORDER, &own, new).await, "403", "it only reads");
    // A cancel must get out: what the sandbox says of an order that does not exist comes from behind the proxy.
    assert_ne!(it.ask("DELETE /v2/api/oms/order/1", &own, new).await, "403");

    // A key that is taken away has its default again.
    it.write("steadfast.toml", "");
    signal(&it.proxy.child, "-HUP").await;
    let begun = tokio::time::Instant::now();
    while it.ask(ORDER, &own, new).await != "200" {
        assert!(begun.elapsed() < Duration::from_secs(20), "SIGHUP reads it again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(it.ask(LIST, "steadfast:8090", new).await, "403");
}

#[tokio::test]
async fn a_config_that_cannot_be_taken_over_changes_nothing() {
    let it = Configured::start("[proxy]\nread-only = true\n", None).await;
    let path = it.folder.path().join("steadfast.toml");
    for (text, told) in [
        (
            "[proxy]\nread-only = false\ndrian = 1\n",
            ":3: unknown key \"drian\" in [proxy]: did you mean drain?",
        ),
        (
            "[proxy]\nread-only = false\nadmin-port = 1\n",
            ":3: admin-port: needs a restart, and nothing was changed",
        ),
        ("client-id = \"other\"\n[proxy]\n", ":1: client-id: needs a restart"),
        ("[proxy\n", ":1: "),
    ] {
        it.write("steadfast.toml", text);
        let (status, said) = it.reload(TOKEN).await;
        assert_eq!(status, "409", "{said}");
        assert!(said.starts_with(&format!("{}{told}", path.display())), "{said}");
    }
    // A token that cannot be used is one of the faults.
    it.write("steadfast.toml", "[proxy]\nread-only = false\n");
    it.write("token", "short");
    assert_eq!(it.reload(TOKEN).await.0, "409");
    let own = it.proxy.authority().to_owned();
    assert_eq!(it.ask(LIST, &own, TOKEN).await, "200", "the old token");
    assert_eq!(it.ask(ORDER, &own, TOKEN).await, "403", "it still only reads");
    it.write("token", TOKEN);
    assert_eq!(it.reload(TOKEN).await.0, "200");
    assert_eq!(it.ask(ORDER, &own, TOKEN).await, "200");
}

/// Returns the limits by which a running proxy keeps a zone.
async fn limits_of(admin_url: &str, zone: &str, token: &str) -> Vec<u64> {
    let admin = admin_url.strip_prefix("http://").unwrap();
    let (status, body) = exchange(admin, admin, "GET /-/state", token, "").await;
    assert_eq!(status, "200", "{body}");
    let state: serde_json::Value = serde_json::from_str(&body).unwrap();
    let zone = state["zones"].as_array().unwrap().iter().find(|it| it["zone"] == zone).unwrap();
    zone["windows"].as_array().unwrap().iter().map(|window| window["limit"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn the_limits_of_a_zone_hold_as_long_as_it_runs() {
    let text = "[zones.general]\nlimits = [\"6/s\"]\n";
    let it = Configured::start(text, None).await;
    let admin = it.proxy.facts["admin_url"].as_str().unwrap();
    assert_eq!(limits_of(admin, "general", TOKEN).await, [6, 400]);
    let path = it.folder.path().join("steadfast.toml");
    for (text, told) in [
        ("[zones.general]\nlimits = [\"7/s\"]\n", ":2: limits: needs a restart, and nothing was changed"),
        ("[zones.general]\nlimits = [\"6/s\"]\nheadroom = 1\n", ":3: headroom: needs a restart"),
        ("", ": limits (removed): needs a restart"),
        (
            "[zones.general]\nlimit = [\"6/s\"]\n",
            ":2: unknown key \"limit\" in [zones.general]: did you mean limits?",
        ),
        ("[zones.general]\nlimits = [\"6\"]\n", ":2: limits: \"6\" is no limit such as"),
    ] {
        it.write("steadfast.toml", text);
        let (status, said) = it.reload(TOKEN).await;
        assert_eq!(status, "409", "{said}");
        assert!(said.starts_with(&format!("{}{told}", path.display())), "{said}");
    }
    assert_eq!(limits_of(admin, "general", TOKEN).await, [6, 400]);

    // The same for an account, whose runs tell each other what they have spent.
    let sandbox = RunningSandbox::start(&[]).await;
    it.write("steadfast.toml", text);
    let mut command = proxy::of(&sandbox, it.folder.path());
    let proxy = RunningProxy::start({
        command.arg("--config").arg(&path);
        command
    })
    .await;
    let admin = proxy.facts["admin_url"].as_str().unwrap();
    assert_eq!(limits_of(admin, "general", &proxy.token()).await, [6, 400]);
    assert_eq!(limits_of(admin, "place_order", &proxy.token()).await, [10]);
}

#[tokio::test]
async fn reloads_under_load_lose_no_order() {
    let it = Configured::start("[proxy]\n", None).await;
    let own = it.proxy.authority().to_owned();
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8 {
        let own = own.clone();
        callers.spawn(async move {
            for order in 0..3 {
                let token = format!("{TOKEN}\r\nIdempotency-Key: o{caller}-{order}");
                let answer = exchange(&own, &own, ORDER, &token, FORM).await;
                assert_eq!(answer.0, "200", "{}", answer.1);
            }
        });
    }
    let mut texts = ["[proxy]\ndrain = 9\n", "[proxy]\nport = 1", "[nonsense]\n"].into_iter().cycle();
    while !callers.is_empty() {
        it.write("steadfast.toml", texts.next().unwrap());
        it.reload(TOKEN).await;
        tokio::select! {
            ended = callers.join_next() => ended.unwrap().unwrap(),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    assert_eq!(placed(it.proxy.facts["sandbox_admin_url"].as_str().unwrap()).await.len(), 24);
}

#[tokio::test]
async fn a_service_manager_hears_of_a_reload() {
    let folder = private_folder();
    let path = folder.path().join("notify");
    let manager = tokio::net::UnixDatagram::bind(&path).unwrap();
    let it = Configured::start("[proxy]\n", Some(path)).await;
    let heard = async || {
        let mut words = [0; 200];
        let length = tokio::time::timeout(Duration::from_secs(20), manager.recv(&mut words)).await.unwrap();
        String::from_utf8_lossy(&words[..length.unwrap()]).into_owned()
    };
    assert!(heard().await.starts_with("READY=1\n"));
    signal(&it.proxy.child, "-HUP").await;
    let told = heard().await;
    let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap_or_else(|| panic!("{told}"));
    assert!(time.trim().parse::<u64>().unwrap() > 0, "{told}");
    assert!(heard().await.starts_with("READY=1\n"));
}
