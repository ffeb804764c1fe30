//! `steadfast wait`: waits until a server answers, for scripts that start one.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Uri, uri::Scheme};
use http_body_util::Empty;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{exit::Failed, readable::readable};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server's address, such as `http://127.0.0.1:8080`; a path behind it is not used.
    url: Uri,
    /// Ask `/readyz` instead of `/livez`.
    #[arg(long)]
    ready: bool,
    /// How many seconds to wait at most, up to a day.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    within: u64,
}

/// How long to wait between two tries, and for one answer at most.
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    let (Some(scheme), Some(authority)) = (args.url.scheme(), args.url.authority()) else {
        return Err(Failed::usage("the address must be one like http://127.0.0.1:8080"));
    };
    if *scheme != Scheme::HTTP || authority.as_str().contains('@') {
        return Err(Failed::usage("the address must begin with http:// and hold no user and password"));
    }
    let path = if args.ready { "/readyz" } else { "/livez" };
    let uri: Uri = format!("http://{authority}{path}").parse().map_err(Failed::usage)?;
    let client: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let until = Instant::now() + Duration::from_secs(args.within);
    let mut missing = "no answer in time".to_owned();
    loop {
        match ask(&client, &uri, until.min(Instant::now() + PATIENCE)).await {
            Ok(()) => return Ok(()),
            Err(Missing::Yet(why)) => missing = why,
            // The last try may have had no time for an answer.
            Err(Missing::Unknown) => {}
            Err(Missing::Sidecars) => {
                return Err(Failed::usage(format_args!(
                    "{uri} is a sidecar's port for programs, which wants a token: wait for the operator's address, which \
                     `steadfast proxy` prints (--admin-port)"
                )));
            }
        }
        if Instant::now() + PAUSE >= until {
            let missing = readable(&missing);
            return Err(Failed::unavailable(format!("{uri} has not answered with 200: {missing}")));
        }
        sleep(PAUSE).await;
    }
}

/// Why a server has not answered with 200.
enum Missing {
    Yet(String),
    /// There was no time for an answer.
    Unknown,
    /// It is a sidecar's port for programs, which never will.
    Sidecars,
}

/// Asks once.
async fn ask(client: &Client<HttpConnector, Empty<Bytes>>, uri: &Uri, until: Instant) -> Result<(), Missing> {
    let request =
        Request::get(uri.clone()).body(Empty::new()).map_err(|error| Missing::Yet(error.to_string()))?;
    match timeout_at(until, client.request(request)).await {
        Ok(Ok(answer)) if answer.status() == 200 => Ok(()),
        Ok(Ok(answer)) if answer.status() == 401 && is_of_sidecar(answer.headers()) => Err(Missing::Sidecars),
        Ok(Ok(answer)) => Err(Missing::Yet(format!("it answers {}", answer.status()))),
        Ok(Err(error)) if error.is_connect() => Err(Missing::Yet("nothing listens there".to_owned())),
        Ok(Err(error)) => Err(Missing::Yet(error.to_string())),
        Err(_) => Err(Missing::Unknown),
    }
}

fn is_of_sidecar(headers: &HeaderMap) -> bool {
    headers.get("proxy-status").is_some_and(|by| by.as_bytes().starts_with(b"steadfast;"))
}
