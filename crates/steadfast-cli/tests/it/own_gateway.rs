//! A service whose answers the test decides.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use steadfast_call::WallClock;
use steadfast_spec::ERRORS;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::command::steadfast;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: String,
}

impl Asked {
    pub(crate) fn is_order(&self) -> bool {
        self.method == "POST" && self.path.ends_with("/place-order")
    }
}

pub(crate) struct OwnGateway {
    pub(crate) base_url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    ahead: Arc<Mutex<Option<Duration>>>,
}

/// The API key and the token that [`OwnGateway::command`] gives.
pub(crate) const KEY: &str = "key-0123456789abcdef";
pub(crate) const TOKEN: &str = "token-fedcba9876543210";

impl OwnGateway {
    /// Serves on a free port. `answer` returns status and body for the order with this number, counted from 0; the
    /// order list shows the orders that were answered with an identifier, to a request with a token.
    pub(crate) async fn serve(answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static) -> Self {
        let list = |asked: &Asked, _, placed: &[Value]| match asked.authorization.is_empty() {
            true => documented(401),
            false => (200, json!({"s": "ok", "d": placed}).to_string()),
        };
        Self::start(answer, list).await
    }

    /// As [`serve`](Self::serve); `list` returns the order list's array, given the number of orders so far.
    pub(crate) async fn with_list(
        answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static,
        list: impl Fn(usize) -> String + Send + Sync + 'static,
    ) -> Self {
        Self::with_answers(answer, move |number| (200, format!(r#"{{"s":"ok","d":{}}}"#, list(number)))).await
    }

    /// As [`with_list`](Self::with_list); `list` returns status and body for requests of the list.
    pub(crate) async fn with_answers(
        answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static,
        list: impl Fn(usize) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        Self::start(answer, move |_, number, _| list(number)).await
    }

    /// As [`serve`](Self::serve); the order list is answered with 401 as soon as more than `lives` orders have arrived.
    pub(crate) async fn revoking(
        answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static,
        lives: usize,
    ) -> Self {
        let list = move |_: &Asked, number, placed: &[Value]| match number > lives {
            true => documented(401),
            false => (200, json!({"s": "ok", "d": placed}).to_string()),
        };
        Self::start(answer, list).await
    }

    async fn start(
        answer: impl Fn(usize) -> (u16, String) + Send + Sync + 'static,
        list: impl Fn(&Asked, usize, &[Value]) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v2", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let ahead: Arc<Mutex<Option<Duration>>> = Arc::default();
        let (placed, seen, dated) = (Mutex::default(), asked.clone(), ahead.clone());
        let service = Arc::new(Conversation { answer, list, placed, seen, dated });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move { service.converse(stream).await });
            }
        });
        Self { base_url, asked, ahead }
    }

    /// Adds to all further answers a `Date` that is this far ahead of the machine's clock.
    pub(crate) fn is_ahead(&self, by: Duration) {
        *self.ahead.lock().unwrap() = Some(by);
    }

    /// Returns the orders, in the order of their arrival.
    pub(crate) fn orders(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.is_order()).cloned().collect()
    }

    /// Returns all requests, in the order of their arrival.
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the command for this service, with only a token in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = steadfast(args);
        self.environment(&mut command);
        command
    }

    /// Returns a shell command at a terminal of its own, in the same environment.
    #[cfg(target_os = "linux")]
    pub(crate) fn terminal(&self, shell: &str) -> Command {
        let mut command = Command::new("script");
        command.args(["-qec", shell, "/dev/null"]);
        self.environment(&mut command);
        command
    }

    /// Returns another program, in the same environment.
    #[cfg(target_os = "linux")]
    pub(crate) fn shell(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("STEADFAST_BASE_URL", &self.base_url);
        command.env("STEADFAST_API_KEY", KEY).env("STEADFAST_ACCESS_TOKEN", TOKEN);
    }
}

/// One gateway, as its connections share it.
struct Conversation<A, L> {
    answer: A,
    list: L,
    /// The list records of the orders that were answered with an identifier.
    placed: Mutex<Vec<Value>>,
    seen: Arc<Mutex<Vec<Asked>>>,
    dated: Arc<Mutex<Option<Duration>>>,
}

impl<A, L> Conversation<A, L>
where
    A: Fn(usize) -> (u16, String),
    L: Fn(&Asked, usize, &[Value]) -> (u16, String),
{
    fn place(&self, number: usize, form: &[u8]) -> (u16, String) {
        let (status, body) = (self.answer)(number);
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        if let (200, Some(order_id)) = (status, answer["d"]["orderId"].as_str()) {
            let mut record: Value = form_urlencoded::parse(form)
                .into_owned()
                .collect::<HashMap<_, _>>()
                .into_iter()
                .map(|(name, value)| (name, Value::from(value)))
                .collect();
            record["orderId"] = order_id.into();
            record["status"] = "open".into();
            let mut placed = self.placed.lock().unwrap();
            if placed.iter().all(|other| other["orderId"] != record["orderId"]) {
                placed.push(record);
            }
        }
        (status, body)
    }

    async fn converse(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                    break at + 4;
                }
                if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                    return;
                }
            };
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let header = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                lines
                    .filter(|(its, _)| its.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_owned())
                    .next()
            };
            let length: usize = header("content-length").map_or(0, |length| length.parse().unwrap());
            while bytes.len() < end + length {
                if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let form: Vec<u8> = bytes.drain(..end + length).skip(end).collect();
            let mut words = head.split(' ').map(str::to_owned);
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            let asked = Asked { method, path, authorization: header("authorization").unwrap_or_default() };
            let number = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(asked.clone());
                seen.iter().filter(|asked| asked.is_order()).count()
            };
            let (status, body) = match asked.is_order() {
                true => self.place(number - 1, &form),
                false => (self.list)(&asked, number, &self.placed.lock().unwrap()),
            };
            let date =
                self.dated.lock().unwrap().map(|by| httpdate::fmt_http_date(WallClock::system().now() + by));
            let date = date.map_or_else(String::new, |date| format!("Date: {date}\r\n"));
            let head = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{date}Content-Length: {}\r\n\r\n",
                body.len()
            );
            if stream.write_all((head + &body).as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the error of a status as §7 documents it.
pub(crate) fn documented(status: u16) -> (u16, String) {
    let row = ERRORS.iter().find(|row| row.status == status).unwrap();
    (status, json!({"s": "error", "msg": row.msg.unwrap()}).to_string())
}

/// Returns an answer that places an order.
pub(crate) fn placed(order_id: &str, msg: &str) -> (u16, String) {
    (200, json!({"s": "ok", "d": {"msg": msg, "orderId": order_id}}).to_string())
}

/// Returns one of the orders of [`orders`](crate::files::orders) as a list record.
pub(crate) fn listed(order_id: &str, qty: usize) -> Value {
    json!({
        "orderId": order_id, "symId": "EQT_INFY_EQ_NSE", "side": "buy", "qty": qty, "type": "market",
        "product": "intraday", "validity": "day", "status": "completed", "legType": "main",
    })
}
