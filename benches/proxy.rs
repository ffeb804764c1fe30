//! What does a read through the sidecar cost, beside nginx and haproxy as plain reverse proxies?
//!
//! One upstream that answers at once, keep-alive on both sides, one connection and 32. The sidecar checks its caller's
//! token, puts the service's on, counts limits that are never reached and watches orders. The others pass on. All take
//! turns within one run. CPU is that of the proxy's processes, user and system. Each proxy has a core of its own, and one
//! worker; the callers and the upstream share another one. Otherwise the machine decides in each turn whether a wake-up
//! crosses cores, which is half of the time of a read.

mod asked;
mod upstream;

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use steadfast::BoxError;
use tokio::time::Instant;

use crate::{asked::Asked, upstream::answer_each};

const ROUNDS: usize = 5;
const TURN: Duration = Duration::from_secs(2);
const CONNECTIONS: [usize; 2] = [1, 32];
const ANSWER_BODY: &str = r#"{"s":"ok","d":{"availableBalance":"152340.75","marginUsed":"20410.00","utilizedAmount":"0","blocked":"0"}}"#;

fn main() -> Result<(), BoxError> {
    let asked = Asked::of_us();
    let is_whole = !matches!(asked, Asked::Table { whole: false });
    if !asked.is_about("proxy") || !is_whole {
        return Ok(());
    }
    // The threads that begin after this, so all of the callers and of the upstream.
    let own = Command::new("taskset")
        .args(["-pc", "0", &std::process::id().to_string()])
        .stdout(Stdio::null())
        .status()?;
    if !own.success() {
        return Err("this machine pins no process to a core".into());
    }
    let upstream = upstream()?;
    let folder = tempfile::tempdir()?;
    let mut proxies = vec![
        Proxy::sidecar(upstream, folder.path())?,
        Proxy::nginx(upstream, folder.path())?,
        Proxy::haproxy(upstream, folder.path())?,
        // No proxy at all: what the client and the upstream take by themselves.
        Proxy { name: "no proxy", address: upstream, token: None, child: None, turns: Default::default() },
    ];
    for proxy in &proxies {
        turn(proxy, 1, Duration::from_millis(300))?;
    }
    for _ in 0..ROUNDS {
        for proxy in &mut proxies {
            for (at, connections) in CONNECTIONS.into_iter().enumerate() {
                let turn = turn(proxy, connections, TURN)?;
                proxy.turns[at].push(turn);
            }
        }
    }
    for (at, connections) in CONNECTIONS.into_iter().enumerate() {
        let case = format!("a read by a proxy, connections: {connections}");
        for proxy in &proxies {
            let median = |of: fn(&Turn) -> f64| median(proxy.turns[at].iter().map(of).collect());
            if proxy.child.is_some() {
                asked.tell(&case, proxy.name, median(|turn| turn.cpu), "µs of CPU");
            }
            asked.tell(&case, proxy.name, median(|turn| turn.each), "µs between answers");
            asked.tell(&case, proxy.name, median(|turn| turn.waited), "µs of waiting at p50");
        }
    }
    Ok(())
}

/// A way to the upstream, and what its turns have shown.
struct Proxy {
    name: &'static str,
    address: SocketAddr,
    /// The sidecar's, for its callers.
    token: Option<String>,
    child: Option<Child>,
    turns: [Vec<Turn>; CONNECTIONS.len()],
}

/// One turn's figures, in microseconds for each read.
struct Turn {
    cpu: f64,
    each: f64,
    waited: f64,
}

impl Proxy {
    fn sidecar(upstream: SocketAddr, folder: &Path) -> Result<Self, BoxError> {
        let config = folder.join("steadfast.toml");
        let zones = ["api_key", "data", "general"]
            .map(|zone| format!("[zones.{zone}]\nlimits = [\"100000/s\", \"4000000/min\"]\n"));
        fs::write(&config, zones.concat())?;
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
        let mut command = pinned(&steadfast()?);
        command.args(["proxy", "--port", "0", "--json", "--config"]).arg(&config);
        command.env("XDG_STATE_HOME", folder).env_remove("XDG_RUNTIME_DIR");
        command.env("STEADFAST_BASE_URL", format!("http://{upstream}/v2"));
        command.env("STEADFAST_API_KEY", "key").env("STEADFAST_ACCESS_TOKEN", "token");
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut facts = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut facts)?;
        let facts: serde_json::Value = serde_json::from_str(&facts)?;
        let text = |key: &str| facts[key].as_str().ok_or_else(|| format!("no `{key}`: {facts}"));
        let token = fs::read_to_string(text("token_file")?)?.trim().to_owned();
        let base = text("base_url")?;
        let address = base.trim_start_matches("http://").trim_end_matches("/v2").parse()?;
        Ok(Self::running("steadfast", address, Some(token), child))
    }

    fn nginx(upstream: SocketAddr, folder: &Path) -> Result<Self, BoxError> {
        let address = free_address()?;
        let config = folder.join("nginx.conf");
        let of = folder.display();
        fs::write(
            &config,
            format!(
                "daemon off; worker_processes 1; pid {of}/nginx.pid; error_log {of}/nginx.log;
                 events {{ worker_connections 1024; }}
                 http {{
                     access_log off; keepalive_requests 1000000000;
                     client_body_temp_path {of}/a; proxy_temp_path {of}/b; fastcgi_temp_path {of}/c;
                     uwsgi_temp_path {of}/d; scgi_temp_path {of}/e;
                     upstream service {{ server {upstream}; keepalive 64; keepalive_requests 1000000000; }}
                     server {{
                         listen {address};
                         location / {{
                             proxy_pass http://service; proxy_http_version 1.1;
                             proxy_set_header Connection \"\"; proxy_set_header Authorization \"Bearer key:token\";
                         }}
                     }}
                 }}"
            ),
        )?;
        let mut command = program("nginx")?;
        let child = command.arg("-c").arg(&config).arg("-p").arg(folder).stderr(Stdio::null()).spawn()?;
        Ok(Self::running("nginx", address, None, child))
    }

    fn haproxy(upstream: SocketAddr, folder: &Path) -> Result<Self, BoxError> {
        let address = free_address()?;
        let config = folder.join("haproxy.cfg");
        fs::write(
            &config,
            format!(
                "global\n nbthread 1\n\
                 defaults\n mode http\n http-reuse always\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
                 frontend here\n bind {address}\n default_backend service\n\
                 backend service\n http-request set-header Authorization \"Bearer key:token\"\n server one {upstream}\n"
            ),
        )?;
        let child = program("haproxy")?.arg("-f").arg(&config).stderr(Stdio::null()).spawn()?;
        Ok(Self::running("haproxy", address, None, child))
    }

    fn running(name: &'static str, address: SocketAddr, token: Option<String>, child: Child) -> Self {
        Self { name, address, token, child: Some(child), turns: Default::default() }
    }

    /// Returns the CPU time of its processes.
    fn cpu(&self) -> io::Result<Duration> {
        let Some(child) = &self.child else { return Ok(Duration::ZERO) };
        // nginx's workers.
        let of = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()))?;
        let workers = of.split_whitespace().map(str::to_owned);
        let ticks = [child.id().to_string()].into_iter().chain(workers).map(|id| ticks(&id));
        let ticks: u64 = ticks.sum::<io::Result<_>>()?;
        // A tick is a hundredth of a second on all of Linux.
        Ok(Duration::from_millis(10 * ticks))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // nginx ends its workers.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

/// Returns the user and system time of a process, in ticks.
fn ticks(id: &str) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // Its name is in brackets, and may hold spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    Ok(fields.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>).sum())
}

fn program(name: &str) -> Result<Command, BoxError> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian's are in the administrator's folders.
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|folder: PathBuf| folder.join(name)).find(|program| program.is_file());
    let found = found.ok_or_else(|| format!("{name} is missing: apt-get install --yes nginx haproxy"))?;
    Ok(pinned(&found))
}

fn pinned(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(program);
    command
}

/// Builds the command, and returns its path.
fn steadfast() -> Result<PathBuf, BoxError> {
    let built = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "steadfast-cli"])
        .env("CARGO_INCREMENTAL", "0")
        .status()?;
    if !built.success() {
        return Err("the command does not compile".into());
    }
    // This program is in `release/deps`.
    let own = env::current_exe()?;
    Ok(own.ancestors().nth(2).ok_or("a bench outside of cargo's folder")?.join("steadfast"))
}

fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

fn upstream() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         date: Sun, 01 Jun 2025 10:00:00 GMT\r\n\r\n{ANSWER_BODY}",
        ANSWER_BODY.len()
    );
    stream.set_nodelay(true)?;
    answer_each(stream, answer.as_bytes())
}

/// Reads through a proxy for some time, on each connection one after the other.
fn turn(proxy: &Proxy, connections: usize, time: Duration) -> Result<Turn, BoxError> {
    let streams: Vec<_> = (0..connections).map(|_| connect(proxy.address)).collect::<Result<_, _>>()?;
    let token = proxy.token.as_deref().map(|token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!(
        "GET /v2/api/account/funds HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\n{}\r\n",
        proxy.address,
        token.unwrap_or_default()
    );
    let (before, begun) = (proxy.cpu()?, Instant::now());
    let end = begun + time;
    let callers: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            let request = request.clone();
            thread::spawn(move || reads(stream, request.as_bytes(), end))
        })
        .collect();
    let mut waits = Vec::new();
    for caller in callers {
        waits.extend(caller.join().map_err(|_| "a caller panicked")??);
    }
    let (cpu, took) = (proxy.cpu()? - before, begun.elapsed());
    let count = waits.len() as f64;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(Turn {
        cpu: micros(cpu) / count,
        each: micros(took) / count,
        waited: median(waits.into_iter().map(micros).collect()),
    })
}

/// Connects to a proxy, which may yet have to start.
#[expect(clippy::disallowed_methods, reason = "nginx and haproxy tell nobody that they listen")]
fn connect(address: SocketAddr) -> Result<TcpStream, BoxError> {
    for _ in 0..100 {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(10)))?;
                return Ok(stream);
            }
            Err(_) => thread::sleep(Duration::from_millis(50)), // no event tells that it listens
        }
    }
    Err(format!("nobody listens at {address}").into())
}

/// Reads until the end, and returns how long each read took.
fn reads(mut stream: TcpStream, request: &[u8], end: Instant) -> Result<Vec<Duration>, io::Error> {
    let mut waits = Vec::new();
    let (mut read, body) = (vec![0; 8_192], ANSWER_BODY.as_bytes());
    while Instant::now() < end {
        let begun = Instant::now();
        stream.write_all(request)?;
        let mut filled = 0;
        // Every answer ends with the same body.
        while !read[..filled].ends_with(body) {
            let more = stream.read(&mut read[filled..])?;
            filled += more;
            if more == 0 || !read[..filled].starts_with(&b"HTTP/1.1 200"[..filled.min(12)]) {
                let answer = String::from_utf8_lossy(&read[..filled]).into_owned();
                return Err(io::Error::other(format!("no answer of the upstream: {answer}")));
            }
        }
        waits.push(begun.elapsed());
    }
    Ok(waits)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
