//! A Chromium without a window, and one page in it.
//!
//! They are driven by the protocol of its developer tools. It is spoken over two pipes, so that no port, no WebSocket and
//! no driver package is needed: each message is JSON and ends with a zero byte.

use std::{env, process::Stdio, time::Duration};

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

const PROGRAM: &str = "chromium";
/// Set where a test that cannot be run must fail.
const MUST_RUN: &str = "STEADFAST_MUST_RUN";
/// The longest time that a test waits for something to be shown.
const PATIENCE: Duration = Duration::from_secs(30);

/// A page of a browser of its own. Dropping it ends the browser.
pub(crate) struct Page {
    browser: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    /// The errors and warnings of the browser since they were last asked for.
    complaints: Vec<String>,
    _profile: TempDir,
}

impl Page {
    /// Starts a browser with an empty page. `None` if there is no Chromium.
    pub(crate) async fn start(options: &[String]) -> Option<Self> {
        if !is_installed() {
            let why = "not run: chromium is not installed (`cargo xtask test --install` installs it)";
            assert!(env::var_os(MUST_RUN).is_none(), "{why}");
            eprintln!("{why}");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        // The browser reads commands from descriptor 3, and writes answers to 4.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2", PROGRAM, "--headless"]);
        command.args(["--remote-debugging-pipe", "--hide-scrollbars", "--no-first-run", "--disable-gpu"]);
        // It shows the tests' own pages alone. Its sandbox does not start for root, nor in most containers.
        command.args(["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut browser = command.spawn().unwrap();
        let mut page = Self {
            commands: browser.stdin.take().unwrap(),
            answers: BufReader::new(browser.stdout.take().unwrap()),
            browser,
            session: None,
            last: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = page.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = page.call("Target.attachToTarget", attach).await;
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Audits"] {
            page.call(&format!("{domain}.enable"), json!({})).await;
        }
        Some(page)
    }

    /// Ends the browser.
    pub(crate) async fn end(mut self) {
        self.session = None;
        self.call("Browser.close", json!({})).await;
        timeout(PATIENCE, self.browser.wait()).await.unwrap().unwrap();
    }

    /// Sends a command, and returns its result.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).await.unwrap();
        loop {
            let mut answer =
                timeout(PATIENCE, self.message()).await.unwrap_or_else(|_| panic!("{method} hangs"));
            if answer["id"] == self.last {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].take()),
                };
            }
            self.complaints.extend(complaint(&answer));
        }
    }

    async fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).await.unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&bytes).unwrap()
    }

    pub(crate) async fn open(&mut self, address: &str) {
        let opened = self.call("Page.navigate", json!({"url": address})).await;
        assert!(opened.get("errorText").is_none(), "{address}: {opened}");
    }

    /// Evaluates an expression in the page; a promise is waited for.
    pub(crate) async fn eval(&mut self, expression: &str) -> Value {
        let mut answer = self.call("Runtime.evaluate", evaluation(expression)).await;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&mut self, expression: &str) {
        let is_so = async {
            loop {
                // A page that is being loaded lacks parts, or goes while it is asked.
                let answer = self.ask("Runtime.evaluate", evaluation(&format!("!!({expression})"))).await;
                if answer.is_ok_and(|answer| answer["result"]["value"] == true) {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        if timeout(PATIENCE, is_so).await.is_err() {
            let shown = self.eval("document.body.innerText").await;
            panic!("never true: {expression}\n{shown}\n{:?}", self.complaints);
        }
    }

    /// Presses and releases the mouse over an element, wherever it is shown.
    pub(crate) async fn click(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect();
               return [box.x + box.width / 2, box.y + box.height / 2] }})()"
        );
        let middle = self.eval(&middle).await;
        for kind in ["mousePressed", "mouseReleased"] {
            let params =
                json!({"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params).await;
        }
    }

    /// Gives the page a window, and the scheme of colours that its user prefers.
    pub(crate) async fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
        // Without movement, each picture of a state is the same.
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"}
        ]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features})).await;
        // Two frames later it is drawn so.
        let drawn =
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
        self.eval(drawn).await;
    }

    /// Returns a picture of the window, or of the whole page, as PNG.
    pub(crate) async fn picture(&mut self, is_whole: bool) -> Vec<u8> {
        let params = json!({"format": "png", "captureBeyondViewport": is_whole});
        let taken = self.call("Page.captureScreenshot", params).await;
        BASE64.decode(taken["data"].as_str().unwrap().as_bytes()).unwrap()
    }

    /// Returns what the browser has complained of, and forgets it: errors and warnings of the console, exceptions that
    /// nothing caught, and violations of a policy.
    pub(crate) async fn complaints(&mut self) -> Vec<String> {
        // Complaints come before the answer to a later command, so this one waits for all of them.
        self.eval("0").await;
        std::mem::take(&mut self.complaints)
    }
}

fn evaluation(expression: &str) -> Value {
    json!({
        "expression": expression,
        "returnByValue": true,
        "awaitPromise": true,
        // Else `eval` is allowed to what the developer tools run.
        "allowUnsafeEvalBlockedByCSP": false
    })
}

fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
}

fn complaint(event: &Value) -> Option<String> {
    let params = &event["params"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match event["method"].as_str()? {
        "Runtime.exceptionThrown" => Some(text(&params["exceptionDetails"])),
        "Runtime.consoleAPICalled"
            if matches!(params["type"].as_str(), Some("error" | "warning" | "assert")) =>
        {
            Some(text(&params["args"]))
        }
        "Log.entryAdded" if matches!(params["entry"]["level"].as_str(), Some("error" | "warning")) => {
            Some(format!("{}: {}", text(&params["entry"]["source"]), text(&params["entry"]["text"])))
        }
        "Audits.issueAdded" => {
            Some(format!("{}: {}", text(&params["issue"]["code"]), params["issue"]["details"]))
        }
        _ => None,
    }
}
