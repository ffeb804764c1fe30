//! The simulator's command line; `cargo xtask sim` starts it.

use std::process::ExitCode;

use clap::Parser;
use steadfast_verify::sim::{
    complain, limits,
    orders::{self, catalogue, requests, scripts},
};

/// Simulates trading days in virtual time, and judges the clients by the gateway's books.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim")]
enum Command {
    /// 429s of each limiter behind each network, for every way in which a gateway can count.
    Limits(limits::Args),
    /// Orders placed twice, lost or wrongly claimed while answers get lost.
    Orders(orders::Args),
    /// Every script of a few faults over one order.
    Scripts(scripts::Args),
    /// Every fault that the sandbox has, a hundred times.
    Catalogue(catalogue::Args),
    /// Requests on the wire for each call, in calm and in storm.
    Requests(requests::Args),
}

fn main() -> ExitCode {
    let kept = match Command::parse() {
        Command::Limits(args) => limits::run(&args),
        Command::Orders(args) => orders::run(&args),
        Command::Scripts(args) => scripts::run(&args),
        Command::Catalogue(args) => catalogue::run(&args),
        Command::Requests(args) => requests::run(&args).map(|()| true),
    };
    match kept {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
