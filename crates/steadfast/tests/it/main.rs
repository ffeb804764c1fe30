//! The whole stack against the sandbox, in virtual time and over TCP.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod account;
mod adapters;
mod answering;
mod answers;
mod asked_again;
mod bad_input;
mod both;
mod client;
mod connecting;
mod deadlines;
mod defaults;
mod describe;
mod dropping;
mod ended;
mod errors;
mod forwarding;
mod getting_out;
mod host;
mod kept;
mod kept_limits;
mod lengths;
mod list_evidence;
mod login_answers;
mod order;
mod pauses;
mod permits;
mod place_answers;
mod placed_all_the_same;
mod probes;
mod published;
mod redirects;
mod renewal;
mod restarted;
#[path = "../spec/served.rs"]
#[allow(dead_code, reason = "the tests of the spec use the rest of it")]
mod served;
mod settings;
mod spelled_paths;
mod spoiled_lists;
mod stored;
mod storm;
mod tcp;
mod token_life;
mod told_to_wait;
mod transport;
mod traps;
mod typed;
mod virtual_time;
mod waiting_for_login;
mod windows;
mod wire_faults;
mod world;
