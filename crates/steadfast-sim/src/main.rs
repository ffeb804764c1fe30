//! The simulator's command line; `cargo xtask sim` starts it.

use std::process::ExitCode;

use clap::Parser;
use steadfast_sim::{limits, orders};

/// Simulates trading days in virtual time, and judges the clients by the gateway's books.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim")]
enum Command {
    /// 429s of each limiter behind each network, for every way in which a gateway can count.
    Limits(limits::Args),
    /// Orders placed twice, lost or wrongly claimed while answers get lost.
    Orders(orders::Args),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Limits(args) => limits::run(&args),
        Command::Orders(args) => orders::run(&args),
    }
}
