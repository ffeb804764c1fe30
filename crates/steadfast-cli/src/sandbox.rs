//! `steadfast sandbox`: the gateway on a port.

mod listing;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde_json::{Map, Value};
use steadfast_sandbox::{Fault, Origin, Sandbox, SpecReading, enforce::Kind};
use steadfast_spec::Zone;
use tokio::net::TcpListener;

use crate::{
    exit::{Failed, print_note},
    signal::interrupted,
    stdout::print_line,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The gateway's port; 0 takes any free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The admin API's port; the next free one after the gateway's if absent.
    #[arg(long)]
    admin_port: Option<u16>,
    /// Listen on this address instead of 127.0.0.1. All who reach it can use the sandbox and its admin API.
    #[arg(long, value_name = "IP")]
    unsafe_listen: Option<IpAddr>,
    /// Where all chance comes from; the credentials, too.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Make a fault strike a share of the requests: `placement.504-applied=0.1`.
    #[arg(long, value_name = "NAME=RATE", value_parser = fault)]
    fault: Vec<(Fault, f64)>,
    /// Inject exactly the faults of this TOML file.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// How a zone counts: `general=fixed:250ms`, `place_order=leaky-bucket:5`.
    #[arg(long, value_name = "ZONE=KIND", value_parser = enforcer)]
    enforcer: Vec<(Zone, Kind)>,
    /// Read what the specification leaves open in another way: `order-ids=uuid`.
    #[arg(long, value_name = "AXIS=VALUE", value_parser = reading)]
    interpret: Vec<(String, String)>,
    /// The paths beside those of the specification; `published` are a published client's, with special orders, exits
    /// and conversions.
    #[arg(long, value_enum, default_value_t = Shape::Spec)]
    paths: Shape,
    /// Write a line for each request to standard error: method, path, parameters, status, and the faults that struck it.
    /// What may be a secret is masked.
    #[arg(long)]
    log: bool,
    /// Let web pages of this origin call the gateway, such as `http://localhost:3000`; `*` is any.
    #[arg(long, value_name = "ORIGIN")]
    cors: Option<Origin>,
    /// Print every fault and axis, and the items of the fault catalogue that they cover; then end.
    #[arg(long)]
    list_faults: bool,
    /// Print the start-up facts as one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Shape {
    // Those of public documentation.
    #[default]
    Spec,
    // Those of a published client, with special orders, exits and conversions.
    Published,
}

fn fault(text: &str) -> Result<(Fault, f64), String> {
    let (name, rate) = text.split_once('=').ok_or("a fault is NAME=RATE")?;
    let fault = name.parse().map_err(|error: steadfast_sandbox::UnknownFault| error.to_string())?;
    let rate = rate.parse().map_err(|_| format!("rate of {fault} is not a number"))?;
    Ok((fault, rate))
}

fn reading(text: &str) -> Result<(String, String), String> {
    let (axis, value) = text.split_once('=').ok_or("a reading is AXIS=VALUE")?;
    SpecReading::default().set(axis, value).map_err(|error| error.to_string())?;
    Ok((axis.to_owned(), value.to_owned()))
}

fn enforcer(text: &str) -> Result<(Zone, Kind), String> {
    let (name, kind) = text.split_once('=').ok_or("an enforcer is ZONE=KIND")?;
    let zone = Zone::ALL.into_iter().find(|zone| zone.as_str() == name).ok_or_else(|| {
        let names: Vec<_> = Zone::ALL.iter().map(|zone| zone.as_str()).collect();
        format!("no zone is named {name:?}; there are {}", names.join(", "))
    })?;
    Ok((zone, kind.parse().map_err(|error: steadfast_sandbox::enforce::InvalidKind| error.to_string())?))
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    if args.list_faults {
        listing::print(args.json);
        return Ok(());
    }
    let sandbox = build(&args)?;
    let ip = args.unsafe_listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let gateway = bind(SocketAddr::new(ip, args.port)).await?;
    let address = gateway.local_addr().map_err(Failed::error)?;
    let admin = match args.admin_port {
        Some(port) => bind(SocketAddr::new(ip, port)).await?,
        None => bind_after(address).await?,
    };
    let admin_address = admin.local_addr().map_err(Failed::error)?;
    announce(&sandbox, address, admin_address, args.json)?;

    let (gateway, admin) =
        tokio::join!(sandbox.serve(gateway, interrupted()), sandbox.serve_admin(admin, interrupted()),);
    gateway.and(admin).map_err(Failed::error)
}

fn build(args: &Args) -> Result<Sandbox, Failed> {
    let mut reading = SpecReading::default();
    for (axis, value) in &args.interpret {
        reading.set(axis, value).map_err(Failed::usage)?;
    }
    let mut builder = Sandbox::builder().seed(args.seed).interpretation(reading);
    if matches!(args.paths, Shape::Published) {
        builder = builder.published_client();
    }
    for &(fault, rate) in &args.fault {
        builder = builder.fault(fault.as_str(), rate).map_err(Failed::usage)?;
    }
    if let Some(file) = &args.script {
        let unusable = |error: &dyn std::fmt::Display| Failed::usage(format!("{}: {error}", file.display()));
        let text = fs::read_to_string(file).map_err(|error| unusable(&error))?;
        // One that was not saved, or was cut, would look like a service without faults.
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Err(unusable(&"it holds no fault and no reading"));
        }
        builder = builder.script(&text).map_err(|error| unusable(&error))?;
    }
    for &(zone, kind) in &args.enforcer {
        builder = builder.enforcer(zone, kind);
    }
    if let Some(origin) = &args.cors {
        builder = builder.allow_origin(origin.clone());
    }
    if args.log {
        builder = builder.log(|line| print_note(line));
    }
    builder.build().map_err(Failed::error)
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failed> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Failed::error(format!("cannot listen on {address}: {error}")))
}

/// Binds the next free port.
async fn bind_after(address: SocketAddr) -> Result<TcpListener, Failed> {
    let ports = (address.port().saturating_add(1)..=u16::MAX).take(100);
    for port in ports {
        if let Ok(listener) = TcpListener::bind(SocketAddr::new(address.ip(), port)).await {
            return Ok(listener);
        }
    }
    bind(SocketAddr::new(address.ip(), 0)).await
}

fn announce(sandbox: &Sandbox, address: SocketAddr, admin: SocketAddr, json: bool) -> Result<(), Failed> {
    let credentials = serde_json::to_value(sandbox.credentials_at(address)).map_err(Failed::error)?;
    let mut facts = Map::new();
    facts.insert("admin_url".to_owned(), format!("http://{admin}").into());
    facts.extend(credentials.as_object().cloned().unwrap_or_default());
    if json {
        print_line(Value::Object(facts));
        return Ok(());
    }
    for name in [
        "base_url",
        "admin_url",
        "api_key",
        "access_token",
        "client_id",
        "password",
        "totp_secret",
        "client_secret",
        "redirect_uri",
    ] {
        print_line(format_args!(
            "{name:<14} {}",
            facts.get(name).and_then(Value::as_str).unwrap_or_default()
        ));
    }
    Ok(())
}
