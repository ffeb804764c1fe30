//! `steadfast proxy`: the sidecar for programs in any language.

mod address;
mod announce;
mod child;
mod descriptors;
mod lock;
#[cfg(target_os = "linux")]
mod machine;
mod news;
mod other_journals;
#[cfg(feature = "redis")]
mod owner;
mod programs;
mod reload;
#[cfg(unix)]
mod socket;
mod supervisor;
mod upstream;

use std::{
    ffi::OsString,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use secrecy::{ExposeSecret, SecretString};
#[cfg(feature = "redis")]
use steadfast::redis::Standby;
use steadfast::{BaseUrl, Client, Paths};
use steadfast_proxy::{
    Proxy,
    front::{Admission, Host, InvalidToken, Tokens},
};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use self::{
    address::bind,
    announce::{Facts, announce, announce_to_program},
    child::Program,
    news::Telling,
    programs::Programs,
    reload::{Changeable, Reload},
    supervisor::Supervisor,
    upstream::{Kept, Upstream},
};
use crate::{
    account::{SECRETS, base_url},
    config, events,
    exit::{Failed, print_note},
    journal::Note,
    orders,
    resends::Resends,
    signal::Signals,
};

/// How long orders and changes on their way may take, in seconds.
const DRAIN: u32 = 60;
/// How long orders in doubt are looked for after the last answer.
const LAST_LOOK: Duration = Duration::from_secs(60);
/// How long cancels and reads on their way may take at least, once no further one is taken.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long the operator's open answers may take at the end.
const LAST_WORD: Duration = Duration::from_secs(1);

const ENDING: &str = "\
SIGTERM, Ctrl-C and, without a config file, SIGHUP end the proxy: no order leaves any more, and new ones are answered with 503. \
Cancels and reads pass until the end. For --drain seconds the proxy waits for the orders and changes on their way, and up to 60 s \
more it looks for orders in doubt, which the journal keeps. Then it closes its listener, and answers what is on its way, for 10 s \
at least. Exit code 0: no order is in doubt or unresolved, and no event wants a look; 6: some are, and each is named, also one \
that an earlier process left, or an event stands that `steadfast orders events` lists; 130: a second signal ended it at once. A \
service manager has to wait for --drain and 71 s; systemd (Type=notify, NotifyAccess=main, WatchdogSec=) is told so by itself.

With a config file, SIGHUP to `proxy` and POST /-/reload on the operator's port read it and the files of the local tokens again. \
allow-host, drain, log, read-only and read-token-file take effect at once. If anything is wrong, or another key has changed, \
which needs a restart, nothing changes, and the answer and standard error say why.";

/// The options of the verb.
#[derive(clap::Args)]
#[command(after_help = format!("{ENDING}\n\n{SECRETS}"))]
pub(crate) struct Args {
    #[command(flatten)]
    served: Served,
    /// Print the start-up facts as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The options of the proxy itself.
#[derive(clap::Args)]
pub(crate) struct Served {
    /// Put a sandbox of its own behind the proxy, to try it without an account.
    #[arg(long)]
    sandbox: bool,
    /// The service's base address, which ends in /v2.
    #[arg(long, value_name = "URL", env = "STEADFAST_BASE_URL", hide_env_values = true, value_parser = base_url)]
    #[arg(required_unless_present = "sandbox")]
    base_url: Option<BaseUrl>,
    /// The file that keeps the token; one for each account below the user's state directory if absent.
    #[arg(long, value_name = "FILE", env = "STEADFAST_STORE", hide_env_values = true)]
    store: Option<PathBuf>,
    /// The file that keeps what is known of orders, so that a restart forgets none; beside the store if absent. A
    /// sandbox has none unless it is named.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// The port for programs; 0 takes any free one. 8090 if absent, 8091 with `--sandbox`, with `exec` any free one.
    #[arg(long)]
    port: Option<u16>,
    /// Listen for programs of this user on a Unix socket instead of a port. A socket that is there is replaced only if
    /// nothing listens at it. Clients call the host `localhost`.
    #[arg(long, value_name = "unix:PATH", value_parser = programs::place, conflicts_with_all = ["port", "unsafe_listen"])]
    listen: Option<PathBuf>,
    /// The port for an operator; 0 takes any free one.
    #[arg(long, default_value_t = 0)]
    admin_port: u16,
    /// The file with the local token of programs that trade; made if it does not exist. Beside the journal if absent;
    /// with a sandbox, the token is printed.
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// The same for programs that only read.
    #[arg(long, value_name = "PATH")]
    read_token_file: Option<PathBuf>,
    /// Listen for programs on this address instead of 127.0.0.1, in clear text. All who reach it and know a token can
    /// trade.
    #[arg(long, value_name = "ADDR")]
    unsafe_listen: Option<IpAddr>,
    /// Let programs call the proxy by this name, too, as they send it, such as `steadfast:8090`. May be repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<Host>,
    /// Let nothing pass but what reads and what cancels (DELETE), whatever the local token.
    #[arg(long)]
    read_only: bool,
    #[cfg(feature = "redis")]
    #[command(flatten)]
    redis: crate::redis::Redis,
    #[command(flatten)]
    resends: Resends,
    /// How long orders and changes on their way may take to be answered once a signal ends the proxy.
    #[arg(long, value_name = "SECONDS", default_value_t = DRAIN)]
    drain: u32,
}

/// The purpose of a proxy.
pub(crate) enum Task {
    /// Tell the facts, and serve until a signal.
    Tell { json: bool },
    /// Serve a program until it ends.
    Run(Vec<OsString>),
}

/// Runs the proxy until a signal ends it.
pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    serve(args.served, Task::Tell { json: args.json }).await
}

/// Runs the proxy until its task ends.
pub(crate) async fn serve(args: Served, task: Task) -> Result<(), Failed> {
    let mut signals = Signals::listen();
    descriptors::raise_limit();
    let programs = match &args.listen {
        Some(path) => Programs::at(path)?,
        None => {
            let usual = match &task {
                Task::Run(_) => 0,
                Task::Tell { .. } if args.sandbox => REHEARSAL_PORT,
                Task::Tell { .. } => PORT,
            };
            let port = args.port.unwrap_or(usual);
            Programs::Port(bind(SocketAddr::new(args.unsafe_listen.unwrap_or(LOCAL), port)).await?)
        }
    };
    let operators = bind(SocketAddr::new(LOCAL, args.admin_port)).await?;
    let target = if args.sandbox { None } else { args.base_url };
    #[cfg(feature = "redis")]
    let shared_at = if args.sandbox { None } else { args.redis.at().await? };
    #[cfg(not(feature = "redis"))]
    let shared_at = refuse_shared().await?;
    let kept = Kept { store: args.store, journal: args.journal, token_file: args.token_file, shared_at };
    let upstream = Upstream::open(target, kept, args.resends).await?;
    let options = Changeable {
        token: upstream.token.clone(),
        token_file: upstream.token_file.clone(),
        read_token_file: args.read_token_file,
        allow_host: args.allow_host,
        read_only: args.read_only,
        drain: args.drain,
    };
    let admission = admission(&options)?;
    if let Some(kept) = upstream.journal.as_deref().map(events::Kept::beside) {
        kept.check().map_err(|error| Failed::usage(format_args!("{}: {error}", kept.path().display())))?;
    }
    let sandbox_admin = upstream.serve_sandbox_admin().await?;
    let proxy = Proxy::new(upstream.client.clone(), upstream.base.clone(), &Paths::public(), admission)
        .account(upstream.account.as_str())
        .orders_of(upstream.orders_of());
    let proxy = if args.sandbox { proxy.pass_test_intent() } else { proxy };
    let supervisor = Arc::new(Supervisor::of_environment());
    let reload = config::file().map(|file| {
        Arc::new(Reload::new(proxy.clone(), supervisor.clone(), file.clone(), options, args.sandbox))
    });
    let proxy = match reload.clone() {
        Some(reload) => proxy.on_reload(move || reload.run()),
        None => proxy,
    };
    let admin = operators.local_addr().map_err(Failed::error)?;
    let telling = Arc::new(Telling::new(upstream.journal.clone()));
    telling.hear(proxy.client().tracker().events());
    #[cfg(feature = "redis")]
    let (proxy, sharing) = share(proxy, upstream.shares, &telling).await;
    let facts = Facts {
        service: (!args.sandbox).then(|| upstream.base.clone()),
        account: upstream.account.clone(),
        base_url: programs.base_url()?,
        socket: args.listen.clone(),
        operators: admin,
        dashboard: if upstream.token_file.is_none() { proxy.dashboard_link(admin) } else { None },
        token: upstream.token_file.is_none().then(|| upstream.token.expose_secret().to_owned()),
        token_file: upstream.token_file.clone(),
        sandbox_admin,
    };
    let _note =
        upstream.journal.as_deref().zip(upstream.token_file.clone()).and_then(|(journal, token_file)| {
            let noted = Note::write(journal, format!("http://{admin}"), token_file);
            noted
                .inspect_err(|error| {
                    print_note(format_args!("steadfast: `orders rule` does not find this proxy: {error}"))
                })
                .ok()
        });
    let mut child = match task {
        Task::Tell { json } => {
            announce(&facts, json);
            None
        }
        Task::Run(command) => {
            announce_to_program(&facts);
            Some(child::start(&command, &facts, &upstream.token)?)
        }
    };
    let (quiet, quieted) = oneshot::channel::<()>();
    let operating = proxy.clone();
    let operating =
        tokio::spawn(async move { operating.serve_admin(operators, async { drop(quieted.await) }).await });
    let (end, ended) = oneshot::channel::<()>();
    let trading = proxy.clone();
    // Dropped, it closes all connections.
    let mut serving = JoinSet::new();
    serving.spawn(async move { programs.serve(&trading, async { drop(ended.await) }).await });
    supervisor.ready();
    let (told, account) = (supervisor.clone(), proxy.clone());
    // If a lock is never released, this call blocks, no sign of life is sent, and systemd restarts the proxy.
    let watched = tokio::spawn(async move {
        told.watch(|| {
            let _ = account.client().in_doubt();
        })
        .await
    });
    let (served, program) = tokio::select! {
        served = served(&mut serving) => (Some(served), None),
        code = over(child.as_mut(), &mut signals, reload.as_deref()) => (None, code),
    };
    proxy.stop();
    // It takes no orders any more, and keeps those that it has.
    #[cfg(feature = "redis")]
    drop(sharing);
    let patience = match &reload {
        Some(reload) => reload.drain(),
        None => Duration::from_secs(args.drain.into()),
    };
    supervisor.stopping(patience + LAST_LOOK + LAST_ANSWERS + LAST_WORD);
    if program.is_none() {
        print_note(
            "steadfast: ending; no order leaves any more, those on their way are answered, and cancels pass",
        );
    }
    let ended = async {
        let until = Instant::now() + patience;
        if timeout_at(until, proxy.drained()).await.is_err() {
            print_note("steadfast: --drain is over, and orders have no answer yet");
        }
        let settled = settle(&proxy.client(), upstream.journal.as_deref()).await;
        // Until now a cancel got out.
        let _ = end.send(());
        let served = match served {
            Some(served) => served,
            None => close(serving, until.max(Instant::now() + LAST_ANSWERS)).await,
        };
        settled.and(served.map_err(Failed::error))
    };
    let result = tokio::select! {
        result = ended => result,
        () = end_asked(&mut signals, reload.as_deref()) => Err(Failed::interrupted("interrupted; orders may be in doubt")),
    };
    let _ = quiet.send(());
    // A viewer that does not read must not keep the process.
    let _ = timeout(LAST_WORD, operating).await;
    let told = telling.end().await;
    watched.abort();
    let events = news::standing(upstream.journal.as_deref(), told);
    result?;
    match program {
        Some(code) if code != 0 => Err(Failed::as_program(code)),
        _ if events > 0 => Err(Failed::outcome_unknown()),
        _ => Ok(()),
    }
}

/// Lets the proxy place the orders that several share, whenever they are this process's. Dropped, the tasks end.
#[cfg(feature = "redis")]
async fn share(
    proxy: Proxy,
    shares: Option<(owner::Shares, Standby)>,
    telling: &Arc<Telling>,
) -> (Proxy, JoinSet<()>) {
    let mut tasks = JoinSet::new();
    let Some((shares, standby)) = shares else { return (proxy, tasks) };
    let known = shares.known();
    let proxy = proxy.shares_orders(known.clone());
    let (kept, telling) = (proxy.clone(), telling.clone());
    tasks.spawn(async move {
        shares.keep(standby, kept, telling).await;
    });
    let examined = known.clone();
    tasks.spawn(async move { examined.examine().await });
    tasks.spawn(owner::borrow_slots(proxy.clone()));
    known.begins().await;
    (proxy, tasks)
}

/// Refuses to place orders alone where a store is given for them.
#[cfg(not(feature = "redis"))]
async fn refuse_shared() -> Result<Option<SecretString>, Failed> {
    match crate::secret::find("REDIS_URL").await? {
        Some(_) => Err(Failed::usage(
            "this command was built without the feature `redis`, and STEADFAST_REDIS_URL is set",
        )),
        None => Ok(None),
    }
}

/// Waits for the program's end, or for a signal if there is none. Returns its exit code.
async fn over(child: Option<&mut Program>, signals: &mut Signals, reload: Option<&Reload>) -> Option<u8> {
    match child {
        Some(child) => Some(child::wait(child, signals).await),
        None => {
            end_asked(signals, reload).await;
            None
        }
    }
}

/// Completes with a signal that asks for the end. With a config file, SIGHUP asks to read it again.
async fn end_asked(signals: &mut Signals, reload: Option<&Reload>) {
    loop {
        match (signals.next_kind().await, reload) {
            #[cfg(unix)]
            (crate::signal::Kind::HangUp, Some(reload)) => drop(reload.run()),
            _ => return,
        }
    }
}

/// Returns whom a proxy with these options admits.
fn admission(options: &Changeable) -> Result<Admission, Failed> {
    let unusable = |path: Option<&Path>, error: InvalidToken| match path {
        Some(path) => Failed::usage(format_args!("{}: {error}", path.display())),
        None => Failed::usage(error),
    };
    let tokens =
        Tokens::new(options.token.clone()).map_err(|error| unusable(options.token_file.as_deref(), error))?;
    let tokens = match &options.read_token_file {
        Some(path) => {
            tokens.reader(upstream::token_in(path)?).map_err(|error| unusable(Some(path), error))?
        }
        None => tokens,
    };
    let admission = options.allow_host.iter().cloned().fold(Admission::new(tokens), Admission::host);
    Ok(if options.read_only { admission.read_only() } else { admission })
}

/// The usual port for programs. A rehearsal has another, so that a program or a journal meant for one meets the other only
/// where a person says so.
const PORT: u16 = 8090;
const REHEARSAL_PORT: u16 = 8091;
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Waits for the end of the listener for programs.
async fn served(serving: &mut JoinSet<io::Result<()>>) -> io::Result<()> {
    match serving.join_next().await {
        Some(Ok(ended)) => ended,
        Some(Err(panicked)) => Err(io::Error::other(panicked)),
        None => Ok(()),
    }
}

/// Waits until open requests are answered, then closes their connections.
async fn close(mut serving: JoinSet<io::Result<()>>, until: Instant) -> io::Result<()> {
    timeout_at(until, served(&mut serving)).await.unwrap_or_else(|_| {
        print_note("steadfast: requests without an answer are left");
        Ok(())
    })
}

/// Looks for orders in doubt a last time, and names those that are left.
async fn settle(client: &Client, journal: Option<&Path>) -> Result<(), Failed> {
    let looked = timeout(LAST_LOOK, client.shutdown()).await;
    let named = orders::name_open(journal, &client.tracker().unresolved());
    match named.max(client.in_doubt()) {
        0 if looked.is_ok() => Ok(()),
        0 => {
            print_note("steadfast: not every order was seen in a list before the end");
            Ok(())
        }
        count => {
            let look = match journal {
                Some(journal) => {
                    format!("; `steadfast orders verify --journal {}` looks for them", journal.display())
                }
                None => String::new(),
            };
            print_note(format_args!(
                "steadfast: orders of which it is not known whether they exist: {count}; look for them before placing them \
                 again{look}"
            ));
            Err(Failed::outcome_unknown())
        }
    }
}

/// A local token: 32 random bytes.
fn random_token() -> Result<SecretString, Failed> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| Failed::error(format_args!("no random numbers: {error}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}
