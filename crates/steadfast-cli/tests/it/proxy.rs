//! `steadfast proxy`, as programs in other languages use it: over a socket, with nothing but a base address and a token.

use std::{path::Path, process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
};

use crate::{
    account::User,
    command::{RunningSandbox, signal, steadfast},
    login::post,
};

pub(crate) const FORM: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=100&product=delivery&validity=day";

pub(crate) struct RunningProxy {
    pub(crate) facts: Value,
    pub(crate) child: Child,
    _stdout: BufReader<ChildStdout>,
}

impl RunningProxy {
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).await.unwrap();
        let facts = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no facts: {line:?}"));
        Self { facts, child, _stdout: stdout }
    }

    pub(crate) fn token(&self) -> String {
        match self.facts["token_file"].as_str() {
            Some(path) => std::fs::read_to_string(path).unwrap().trim().to_owned(),
            None => self.facts["local_token"].as_str().unwrap().to_owned(),
        }
    }

    pub(crate) fn authority(&self) -> &str {
        self.facts["base_url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/v2").unwrap()
    }

    /// Sends an order, and returns the connection on which its answer comes.
    async fn send_order(&self, lines: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.authority()).await.unwrap();
        let request = format!(
            "POST /v2/api/oms/place-order HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{lines}\
             Connection: close\r\nContent-Length: {}\r\n\r\n{FORM}",
            self.authority(),
            self.token(),
            FORM.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn order(&self, lines: &str) -> String {
        answer(self.send_order(lines).await).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> String {
        let mut stream = TcpStream::connect(self.authority()).await.unwrap();
        let request = format!(
            "DELETE /v2/api/oms/cancel-order?orderId={id} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Connection: close\r\n\r\n",
            self.authority(),
            self.token()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        answer(stream).await
    }

    /// Sends an order whose equal is at the service until the proxy tells its id. None may be placed.
    async fn ask_until_found(&self, id: &str) {
        for asked in 0.. {
            let again = self.order("").await;
            assert!(again.starts_with("HTTP/1.1 409"), "{again}");
            if again.contains(&format!("x-steadfast-order-id: {id}")) {
                return;
            }
            assert!(asked < 600, "nothing looks for it: {again}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn answer(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Returns the ids of the orders that exist at a sandbox.
pub(crate) async fn placed(admin_url: &str) -> Vec<String> {
    let authority = admin_url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let request = format!("GET /state HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let state = answer(stream).await;
    let state: Value = serde_json::from_str(state.split_once("\r\n\r\n").unwrap().1).unwrap();
    let orders = state["orders"].as_array().unwrap();
    orders.iter().map(|order| order["order_id"].as_str().unwrap().to_owned()).collect()
}

async fn until_placed(admin_url: &str) -> String {
    loop {
        match placed(admin_url).await.pop() {
            Some(id) => return id,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Returns the proxy of a running sandbox, as of a real account.
pub(crate) fn of(sandbox: &RunningSandbox, state: &Path) -> Command {
    let mut command = steadfast(&["proxy", "--port", "0", "--json"]);
    command.env("XDG_STATE_HOME", state).env_remove("XDG_RUNTIME_DIR");
    command.env("STEADFAST_BASE_URL", sandbox.fact("base_url"));
    command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
    command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token"));
    command
}

async fn behind_a_504() -> (RunningSandbox, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("faults.toml");
    // The list fails twice, so that the order is not found for some seconds.
    let faults = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\n\
        [[fault]]\nname = 'list.504'\nnth = 2\ntimes = 2";
    std::fs::write(&script, faults).unwrap();
    (RunningSandbox::start(&["--script", script.to_str().unwrap()]).await, folder)
}

#[tokio::test]
async fn a_sandbox_behind_a_proxy_needs_one_command() {
    let mut proxy = RunningProxy::start(steadfast(&["proxy", "--sandbox", "--port", "0", "--json"])).await;
    assert_eq!(proxy.facts["schema_version"], 1);
    assert!(proxy.facts["token_file"].is_null(), "{}", proxy.facts);
    let placed_as = proxy.order("").await;
    assert!(placed_as.starts_with("HTTP/1.1 200"), "{placed_as}");
    let orders = placed(proxy.facts["sandbox_admin_url"].as_str().unwrap()).await;
    assert_eq!(orders.len(), 1);
    assert!(placed_as.contains(&orders[0]));
    let link = proxy.facts["dashboard_url"].as_str().unwrap();
    let (admin, secret) = link.split_once("/#").unwrap();
    assert_eq!((admin, secret.len()), (proxy.facts["admin_url"].as_str().unwrap(), 64), "{link}");
    signal(&proxy.child, "-TERM").await;
    assert!(proxy.child.wait().await.unwrap().success());
}

#[tokio::test]
async fn the_lines_that_it_prints_work_as_they_stand() {
    let curl = Command::new("curl").arg("--version").output().await;
    if !curl.is_ok_and(|curl| curl.status.success()) {
        assert!(std::env::var_os("STEADFAST_MUST_RUN").is_none(), "curl is missing");
        eprintln!("not run: curl is missing");
        return;
    }
    let mut child = steadfast(&["proxy", "--sandbox", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut shown, mut run) = (Vec::new(), 0);
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.starts_with("curl ") {
            let output = Command::new("sh").args(["-c", &line]).output().await.unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && !said.contains("error"), "{line}: {said}");
            run += 1;
        }
        let is_last = line.contains("/-/halt");
        shown.push(line);
        if is_last {
            break;
        }
    }
    assert_eq!(run, 3, "{shown:?}");
}

#[tokio::test]
async fn an_order_survives_the_proxy_that_was_killed_with_it() {
    let (sandbox, state) = behind_a_504().await;
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let _caller = proxy.send_order("Idempotency-Key: k1\r\n").await;
    let id = until_placed(sandbox.fact("admin_url")).await;
    proxy.child.kill().await.unwrap();
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    // An equal order without a name must not be taken for another one.
    let equal = proxy.order("").await;
    assert!(equal.starts_with("HTTP/1.1 409"), "{equal}");
    let again = proxy.order("Idempotency-Key: k1\r\n").await;
    assert!(again.starts_with("HTTP/1.1 200") && again.contains(&id), "{again}");
    assert_eq!(placed(sandbox.fact("admin_url")).await, [id]);
}

#[tokio::test]
async fn an_order_without_a_name_is_looked_for_after_a_restart_and_not_placed_again() {
    let (sandbox, state) = behind_a_504().await;
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let _caller = proxy.send_order("").await;
    let id = until_placed(sandbox.fact("admin_url")).await;
    proxy.child.kill().await.unwrap();
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    // Its caller has heard nothing.
    proxy.ask_until_found(&id).await;
    assert_eq!(placed(sandbox.fact("admin_url")).await, [id]);
}

/// Regression: that nobody had heard of it stood in the memory of the first process alone.
#[tokio::test]
async fn a_found_order_that_its_caller_has_not_heard_of_is_not_placed_again_after_restarts() {
    let (sandbox, state) = behind_a_504().await;
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let caller = proxy.send_order("").await;
    let id = until_placed(sandbox.fact("admin_url")).await;
    drop(caller);
    proxy.ask_until_found(&id).await;
    proxy.child.kill().await.unwrap();
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    proxy.ask_until_found(&id).await;
    signal(&proxy.child, "-TERM").await;
    proxy.child.wait().await.unwrap();
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    proxy.ask_until_found(&id).await;
    let new = proxy.order("x-new-order: 1\r\n").await;
    assert!(new.starts_with("HTTP/1.1 200"), "{new}");
    assert_eq!(placed(sandbox.fact("admin_url")).await.len(), 2);
}

#[tokio::test]
async fn an_order_that_its_caller_has_heard_of_makes_room_for_an_equal_one_after_a_restart() {
    let (sandbox, state) = (RunningSandbox::start(&[]).await, tempfile::tempdir().unwrap());
    for count in 1..=3 {
        let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
        let heard = proxy.order("").await;
        assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
        assert_eq!(placed(sandbox.fact("admin_url")).await.len(), count);
        if count == 2 {
            signal(&proxy.child, "-TERM").await;
            proxy.child.wait().await.unwrap();
            continue;
        }
        let journal = proxy.facts["token_file"].as_str().unwrap().strip_suffix(".token").unwrap();
        let notes = || String::from_utf8_lossy(&std::fs::read(journal).unwrap()).matches("heard").count();
        while notes() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        proxy.child.kill().await.unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn more_callers_than_the_usual_limit_of_files_leave_room_for_an_order() {
    let own = steadfast(&["proxy", "--sandbox", "--port", "0", "--json"]);
    let own = own.as_std();
    let mut limited = Command::new("sh");
    limited.kill_on_drop(true).args(["-c", "ulimit -Sn 64 && exec \"$0\" \"$@\""]);
    limited.arg(own.get_program()).args(own.get_args());
    limited.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let proxy = RunningProxy::start(limited).await;
    let mut callers = Vec::new();
    for _ in 0..80 {
        callers.push(TcpStream::connect(proxy.authority()).await.unwrap());
    }
    let answer = tokio::time::timeout(Duration::from_secs(20), proxy.order("")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn sigterm_answers_the_orders_on_their_way() {
    let (sandbox, state) = behind_a_504().await;
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let caller = proxy.send_order("").await;
    let id = until_placed(sandbox.fact("admin_url")).await;
    signal(&proxy.child, "-TERM").await;
    let answer = answer(caller).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(&id), "{answer}");
    assert!(proxy.child.wait().await.unwrap().success());
    assert_eq!(placed(sandbox.fact("admin_url")).await, [id]);
}

#[tokio::test]
async fn sigterm_looks_for_an_order_beyond_drain_and_keeps_its_trace() {
    let (sandbox, state) = behind_a_504().await;
    let mut command = of(&sandbox, state.path());
    command.args(["--drain", "0"]).stderr(Stdio::piped());
    let mut proxy = RunningProxy::start(command).await;
    let caller = proxy.send_order("Idempotency-Key: k1\r\n").await;
    let id = until_placed(sandbox.fact("admin_url")).await;
    signal(&proxy.child, "-TERM").await;
    let told = answer(caller).await;
    assert!(told.starts_with("HTTP/1.1 200") && told.contains(&id), "the last look finds it: {told}");
    assert!(proxy.child.wait().await.unwrap().success());
    let mut said = String::new();
    proxy.child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
    assert!(said.contains("steadfast: --drain is over"), "{said}");
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let again = proxy.order("Idempotency-Key: k1\r\n").await;
    assert!(again.starts_with("HTTP/1.1 200") && again.contains(&id), "{again}");
    assert_eq!(placed(sandbox.fact("admin_url")).await, [id]);
}

/// Regression: a sidecar that waited for an order in doubt took no cancel, for two minutes at worst.
#[tokio::test]
async fn a_cancel_gets_out_while_a_sidecar_that_ends_looks_for_an_order() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("faults.toml");
    let faults = "[[fault]]\nname = 'placement.504-not-applied'\nnth = 2\n";
    std::fs::write(&script, faults).unwrap();
    let sandbox = RunningSandbox::start(&["--script", script.to_str().unwrap()]).await;
    let mut proxy = RunningProxy::start(of(&sandbox, folder.path())).await;
    let admin = proxy.facts["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    assert!(proxy.order("").await.starts_with("HTTP/1.1 200"));
    let id = placed(sandbox.fact("admin_url")).await.remove(0);
    let caller = proxy.send_order("x-new-order: 1\r\n").await;
    let figures = || get(admin, "/metrics", proxy.token());
    while !figures().await.contains("\nsteadfast_orders_in_doubt 1\n") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    signal(&proxy.child, "-TERM").await;
    while !get(admin, "/readyz", String::new()).await.starts_with("HTTP/1.1 503") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = proxy.order("x-new-order: 1\r\n").await;
    let why = "proxy-status: steadfast; error=http_request_denied; details=\"proxy is ending and lets no order leave; nothing was sent\"";
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains(why), "{refused}");
    assert!(refused.contains("retry-after: 5\r\n"), "{refused}");
    let list = get(proxy.authority(), "/v2/api/oms/orders", proxy.token()).await;
    assert!(list.starts_with("HTTP/1.1 200") && list.contains(&id), "{list}");
    let cancelled = proxy.cancel(&id).await;
    assert!(cancelled.starts_with("HTTP/1.1 200"), "{cancelled}");
    assert!(figures().await.contains("\nsteadfast_orders_in_doubt 1\n"), "the order is still looked for");
    // It is settled 15 s after its answer, and then missing in two lists: it is not sent again.
    let told = answer(caller).await;
    assert!(told.starts_with("HTTP/1.1 504") && told.contains("retry-safe: false"), "{told}");
    assert_eq!(proxy.child.wait().await.unwrap().code(), Some(6));
    assert_eq!(placed(sandbox.fact("admin_url")).await, [id]);
}

/// An order without a name whose answer was read on a connection that stays open: whether it was heard is decided when
/// that ends, behind the last look.
#[tokio::test]
async fn an_answer_that_was_read_before_the_end_counts_as_heard_for_the_next_process() {
    let (sandbox, state) = (RunningSandbox::start(&[]).await, tempfile::tempdir().unwrap());
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let mut caller = TcpStream::connect(proxy.authority()).await.unwrap();
    let request = format!(
        "POST /v2/api/oms/place-order HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{FORM}",
        proxy.authority(),
        proxy.token(),
        FORM.len()
    );
    caller.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"}}") {
        read.push(caller.read_u8().await.unwrap());
    }
    signal(&proxy.child, "-TERM").await;
    proxy.child.wait().await.unwrap();
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let equal = proxy.order("").await;
    assert!(equal.starts_with("HTTP/1.1 200"), "{equal}");
}

#[tokio::test]
async fn a_second_proxy_of_an_account_is_refused() {
    let (sandbox, state) = behind_a_504().await;
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let token_file = proxy.facts["token_file"].as_str().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(token_file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Another journal does not make it another account.
    let other = state.path().join("other.journal");
    let second = of(&sandbox, state.path()).arg("--journal").arg(&other).output().await.unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("another proxy of this account is running"), "{said}");
    std::fs::set_permissions(token_file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    drop(proxy);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let open = of(&sandbox, state.path()).output().await.unwrap();
    let said = String::from_utf8_lossy(&open.stderr).into_owned();
    assert_eq!((open.status.code(), said.contains(".token")), (Some(2), true), "{said}");
}

/// Regression: a start that was killed had left it empty, and no later one said which file it was.
#[cfg(unix)]
#[tokio::test]
async fn an_empty_token_file_is_named() {
    let folder = private_folder();
    let file = folder.path().join("local.token");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = steadfast(&["proxy", "--sandbox", "--port", "0", "--token-file"]);
    let output = command.arg(&file).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.contains("local.token: ")), (Some(2), true), "{said}");
}

/// Returns a folder that only this user can reach, whatever the mask.
#[cfg(unix)]
pub(crate) fn private_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    folder
}

#[cfg(unix)]
#[tokio::test]
async fn a_proxy_that_knows_no_runtime_folder_is_refused_beside_one_that_does() {
    let (sandbox, state) = behind_a_504().await;
    let runtime = private_folder();
    let mut command = of(&sandbox, state.path());
    command.env("XDG_RUNTIME_DIR", runtime.path());
    let _proxy = RunningProxy::start(command).await;
    assert!(std::fs::read_dir(runtime.path().join("steadfast")).unwrap().next().is_some());
    let other = state.path().join("other.journal");
    let mut second = of(&sandbox, state.path());
    let second = second.arg("--journal").arg(&other).output();
    let second = tokio::time::timeout(Duration::from_secs(20), second).await.expect("it runs").unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(
        (second.status.code(), said.contains("another proxy of this account")),
        (Some(2), true),
        "{said}"
    );
    // A folder that others can reach is not trusted, and no reason not to start.
    let open = tempfile::tempdir().unwrap();
    std::fs::set_permissions(open.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (elsewhere, fresh) = behind_a_504().await;
    let mut command = of(&elsewhere, fresh.path());
    command.env("XDG_RUNTIME_DIR", open.path());
    let _third = RunningProxy::start(command).await;
    assert!(std::fs::read_dir(open.path()).unwrap().next().is_none());
}

#[tokio::test]
async fn a_token_that_reads_must_not_be_the_one_that_trades() {
    let folder = tempfile::tempdir().unwrap();
    let (trade, read) = (folder.path().join("trade"), folder.path().join("read"));
    for path in [&trade, &read] {
        std::fs::write(path, "trade-0123456789abcdef\n").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let mut command = steadfast(&["proxy", "--sandbox", "--port", "0"]);
    command.arg("--token-file").arg(&trade).arg("--read-token-file").arg(&read);
    let refused = command.output().await.unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("read: the token that only reads is the token that trades"), "{said}");
    assert!(!said.contains("0123456789"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn programs_of_this_user_trade_through_a_socket() {
    let folder = private_folder();
    let path = folder.path().join("proxy.sock");
    let listen = format!("unix:{}", path.display());
    let mut proxy =
        RunningProxy::start(steadfast(&["proxy", "--sandbox", "--listen", &listen, "--json"])).await;
    assert_eq!(proxy.facts["base_url"], "http://localhost/v2");
    assert_eq!(proxy.facts["socket"], path.to_str().unwrap());
    let token = proxy.token();
    let asked = async |host: &str, token: &str| {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        let request = format!(
            "POST /v2/api/oms/place-order HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{FORM}",
            FORM.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(asked("evil.example", &token).await.starts_with("HTTP/1.1 403"));
    assert!(asked("localhost", "wrong-0123456789abcdef").await.starts_with("HTTP/1.1 401"));
    let placed_as = asked("localhost", &token).await;
    assert!(placed_as.starts_with("HTTP/1.1 200"), "{placed_as}");
    assert_eq!(placed(proxy.facts["sandbox_admin_url"].as_str().unwrap()).await.len(), 1);
    let second = steadfast(&["proxy", "--sandbox", "--listen", &listen]).output().await.unwrap();
    assert_eq!(second.status.code(), Some(2));
    let admin = proxy.facts["admin_url"].clone();
    proxy.child.kill().await.unwrap();
    assert!(path.exists(), "it was killed");
    let mut next =
        RunningProxy::start(steadfast(&["proxy", "--sandbox", "--listen", &listen, "--json"])).await;
    assert_ne!(next.facts["admin_url"], admin);
    signal(&next.child, "-TERM").await;
    assert!(next.child.wait().await.unwrap().success());
    assert!(!path.exists(), "it ended by itself");
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_trades_through_a_proxy_of_its_own_and_gets_none_of_the_accounts_secrets() {
    let file = crate::files::orders(2);
    let mut command = steadfast(&["exec", "--sandbox", "--"]);
    command.arg(env!("CARGO_BIN_EXE_steadfast")).args(["replay", file.path(), "--yes"]);
    let ended = command.output().await.unwrap();
    let (results, notes) = crate::files::said(&ended);
    assert!(ended.status.success(), "{notes}");
    assert_eq!(results.matches(",placed,").count(), 2, "{results}");
    // Regression: two layers sent orders in doubt again, and nothing was said.
    assert!(
        notes.contains("is a sidecar of steadfast") && notes.contains("as with --never-resend"),
        "{notes}"
    );

    let script = "test -z \"$STEADFAST_PASSWORD$STEADFAST_TOTP_SECRET\" && test -n \"$STEADFAST_ACCESS_TOKEN\" && exit 7";
    let mut command = steadfast(&["exec", "--sandbox", "--", "sh", "-c", script]);
    command.env("STEADFAST_PASSWORD", "p").env("STEADFAST_TOTP_SECRET", "t");
    assert_eq!(command.output().await.unwrap().status.code(), Some(7));
    let missing = steadfast(&["exec", "--sandbox", "--", "/no/such/program"]).output().await.unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_goes_to_the_program_and_its_end_ends_the_proxy() {
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = steadfast(&["exec", "--sandbox", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(9));
    let killed = steadfast(&["exec", "--sandbox", "--", "sh", "-c", "kill -9 $$"]).output().await.unwrap();
    assert_eq!(killed.status.code(), Some(137));
}

/// Regression: it waited for as long as it may, and said that the server answers 401.
#[tokio::test]
async fn a_wait_for_the_port_for_programs_is_told_of_the_operators() {
    let proxy = RunningProxy::start(steadfast(&["proxy", "--sandbox", "--port", "0", "--json"])).await;
    let begun = tokio::time::Instant::now();
    let args = ["wait", proxy.facts["base_url"].as_str().unwrap(), "--within", "60"];
    let waited = steadfast(&args).output().await.unwrap();
    let said = String::from_utf8(waited.stderr).unwrap();
    assert_eq!(waited.status.code(), Some(2), "{said}");
    assert!(said.contains("is a sidecar's port for programs") && said.contains("--admin-port"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let args = ["wait", proxy.facts["admin_url"].as_str().unwrap(), "--ready"];
    assert!(steadfast(&args).output().await.unwrap().status.success());
}

/// Regression: the first of these killed the proxy, and the program with it.
#[cfg(unix)]
#[tokio::test]
async fn signals_that_mean_something_to_the_program_alone_reach_it() {
    let names = ["USR1", "USR2", "QUIT", "ALRM", "WINCH", "HUP", "INT"];
    let traps: Vec<String> = names.iter().map(|name| format!("trap 'echo {name}' {name}")).collect();
    let script = format!("{}; echo ready; while :; do sleep 0.05; done", traps.join("; "));
    let mut command = steadfast(&["exec", "--sandbox", "--", "sh", "-c", &script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    for name in names {
        signal(&child, &format!("-{name}")).await;
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some(name));
    }
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(143));
}

#[cfg(unix)]
#[tokio::test]
async fn a_service_manager_is_told_of_start_and_end() {
    let folder = private_folder();
    let path = folder.path().join("notify");
    let manager = tokio::net::UnixDatagram::bind(&path).unwrap();
    let mut command = steadfast(&["proxy", "--sandbox", "--port", "0", "--json", "--drain", "3"]);
    let mut proxy = RunningProxy::start({
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
        command
    })
    .await;
    let heard = async || {
        let mut words = [0; 200];
        let length = tokio::time::timeout(Duration::from_secs(20), manager.recv(&mut words)).await.unwrap();
        String::from_utf8_lossy(&words[..length.unwrap()]).into_owned()
    };
    assert!(heard().await.starts_with("READY=1\n"));
    assert_eq!([heard().await, heard().await], ["WATCHDOG=1\n"; 2]);
    signal(&proxy.child, "-TERM").await;
    let told = loop {
        let told = heard().await;
        if told != "WATCHDOG=1\n" {
            break told;
        }
    };
    assert!(told.contains("STOPPING=1\n") && told.contains("EXTEND_TIMEOUT_USEC=74000000\n"), "{told}");
    assert!(proxy.child.wait().await.unwrap().success());
}

/// Regression: the service refused every request after its second 401, while `/readyz` and `auth status` said that all was
/// well.
#[cfg(unix)]
#[tokio::test]
async fn a_session_that_is_refused_before_the_next_login_is_told_everywhere() {
    let user = User::new().await;
    assert!(user.totp(&["login"]).output().await.unwrap().status.success());
    let mut command = user.totp(&["proxy", "--port", "0", "--json"]);
    command.env_remove("XDG_RUNTIME_DIR");
    let proxy = RunningProxy::start(command).await;
    let admin = proxy.facts["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let sandbox = user.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    let list = || get(proxy.authority(), "/v2/api/oms/orders", proxy.token());
    assert!(list().await.starts_with("HTTP/1.1 200"));
    post(sandbox, "/tokens/revoke", "application/json", "{}").await;
    assert!(list().await.starts_with("HTTP/1.1 200"), "a login follows");
    post(sandbox, "/tokens/revoke", "application/json", "{}").await;
    for _ in 0..2 {
        assert!(list().await.starts_with("HTTP/1.1 401"));
        tokio::time::sleep(Duration::from_millis(2_100)).await;
    }
    let ready = get(admin, "/readyz", String::new()).await;
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains("the service refuses the token (401); the next login starts at "), "{ready}");
    let status = user.command(&["auth", "status"]).output().await.unwrap();
    let said = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.status.code(), Some(3), "{said}");
    assert!(
        said.contains("token     refused\n") && said.contains("\nrenewal   by the program that uses it, at "),
        "{said}"
    );
}

pub(crate) async fn get(authority: &str, path: &str, token: String) -> String {
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    answer(stream).await
}
