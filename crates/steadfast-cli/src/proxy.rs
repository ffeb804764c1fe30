//! `steadfast proxy`: the sidecar for programs in any language.

mod announce;
mod upstream;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use secrecy::{ExposeSecret, SecretString};
use steadfast::{BaseUrl, Client, Paths, dedup::OrderEvent};
use steadfast_proxy::{Proxy, front::Tokens};
use tokio::{
    net::TcpListener,
    sync::{
        broadcast::{Receiver, error::RecvError},
        oneshot,
    },
    time::timeout,
};

use self::{
    announce::{Facts, announce},
    upstream::Upstream,
};
use crate::{
    account::{SECRETS, base_url},
    events::{Contradicted, Kept, Told},
    exit::{Failed, print_note},
    signal::Signals,
};

/// How long orders in doubt are looked for after the last answer.
const LAST_LOOK: Duration = Duration::from_secs(60);

/// The options of the verb.
#[derive(clap::Args)]
#[command(after_help = SECRETS)]
pub(crate) struct Args {
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
    /// The port for programs; 0 takes any free one.
    #[arg(long, default_value_t = 8090)]
    port: u16,
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
    /// Print the start-up facts as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the proxy until a signal ends it.
pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    let mut signals = Signals::listen();
    let programs = bind(SocketAddr::new(args.unsafe_listen.unwrap_or(LOCAL), args.port)).await?;
    let operators = bind(SocketAddr::new(LOCAL, args.admin_port)).await?;
    let target = if args.sandbox { None } else { args.base_url };
    let upstream = Upstream::open(target, args.store, args.journal, args.token_file).await?;
    let tokens = Tokens::new(upstream.token.clone()).map_err(Failed::usage)?;
    let tokens = match &args.read_token_file {
        Some(path) => tokens.reader(upstream::token_in(path)?).map_err(Failed::usage)?,
        None => tokens,
    };
    let sandbox_admin = upstream.serve_sandbox_admin().await?;
    let client = upstream.client.clone();
    let proxy = Proxy::new(client.clone(), upstream.base.clone(), &Paths::public(), tokens);
    let facts = Facts {
        programs: programs.local_addr().map_err(Failed::error)?,
        operators: operators.local_addr().map_err(Failed::error)?,
        token: upstream.token_file.is_none().then(|| upstream.token.expose_secret().to_owned()),
        token_file: upstream.token_file.clone(),
        sandbox_admin,
    };
    announce(&facts, args.json);
    let telling =
        tokio::spawn(tell(client.tracker().events(), upstream.journal.as_deref().map(Kept::beside)));

    let (end, ended) = oneshot::channel::<()>();
    let operating = proxy.clone();
    let operating =
        tokio::spawn(async move { operating.serve_admin(operators, std::future::pending()).await });
    let serving = proxy.serve(programs, async { drop(ended.await) });
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = serving.as_mut() => return served.map_err(Failed::error),
        () = signals.next() => {}
    }
    proxy.stop();
    let _ = end.send(());
    print_note("steadfast: ending; no order leaves any more, and those on their way are answered");
    let ended = async {
        serving.await.map_err(Failed::error)?;
        settle(&client).await
    };
    let result = tokio::select! {
        result = ended => result,
        () = signals.next() => Err(Failed::interrupted("interrupted; orders may be in doubt")),
    };
    operating.abort();
    telling.abort();
    result
}

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn bind(address: SocketAddr) -> Result<TcpListener, Failed> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Failed::error(format!("cannot listen on {address}: {error}")))
}

/// Looks for orders in doubt a last time.
async fn settle(client: &Client) -> Result<(), Failed> {
    let looked = timeout(LAST_LOOK, client.shutdown()).await;
    match client.in_doubt() {
        0 if looked.is_ok() => Ok(()),
        0 => {
            print_note("steadfast: not every order was seen in a list before the end");
            Ok(())
        }
        count => {
            print_note(format_args!(
                "steadfast: {count} orders are in doubt: look for them before placing them again"
            ));
            Err(Failed::outcome_unknown())
        }
    }
}

/// Prints the news about orders, and writes down what a person has to look at.
async fn tell(mut events: Receiver<OrderEvent>, kept: Option<Kept>) {
    let mut contradicted = Contradicted::default();
    loop {
        let told = match events.recv().await {
            Ok(event) => contradicted.tell(&event, |_| false),
            Err(RecvError::Lagged(missed)) => Told::missed(missed),
            Err(RecvError::Closed) => return,
        };
        match told {
            Told::Stands(seen) => {
                print_note(seen.sentence());
                if let Some(Err(error)) = kept.as_ref().map(|kept| kept.keep(&seen)) {
                    print_note(format_args!("steadfast: event cannot be written down: {error}"));
                }
            }
            Told::Note(note) => print_note(note),
            Told::Elsewhere => {}
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
