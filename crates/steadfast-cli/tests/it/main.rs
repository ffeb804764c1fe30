//! The `steadfast` command as a user sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account;
#[cfg(unix)]
mod behind;
mod command;
mod config;
mod credentials;
mod cut;
mod day_after;
mod dead_token;
mod demo;
#[cfg(unix)]
mod docs;
mod events;
mod files;
#[cfg(target_os = "linux")]
mod full_disk;
mod identifiers;
mod interruption;
mod journals;
mod leaks;
mod lock_out;
mod login;
#[cfg(all(unix, feature = "redis"))]
mod many_sidecars;
#[cfg(unix)]
mod new_journal;
#[cfg(unix)]
mod not_ready;
#[cfg(target_os = "linux")]
mod one_sidecar;
#[cfg(unix)]
mod other_user;
mod own_gateway;
#[cfg(unix)]
mod pressure;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod proxy_events;
mod reaching;
mod readable;
mod readme;
#[cfg(unix)]
mod rehearsal;
mod reload;
mod renamed;
mod replay;
mod resends;
mod results;
mod resume;
mod rows;
mod ruling;
mod sandbox;
#[cfg(unix)]
mod second_run;
#[cfg(unix)]
mod session;
mod shared_limits;
mod shell;
#[cfg(all(unix, feature = "redis"))]
mod store;
mod target;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod unit;
mod unwritten;
#[cfg(unix)]
mod verify_interrupted;
