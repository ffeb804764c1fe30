//! The rows of the scenario matrix: the two layers over a scripted gateway, in paused time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its rig too")]

mod gateway;
mod invariants;
mod kept;
mod rig;

mod attacks;
mod callers;
mod cancellation;
mod chaos;
mod classification;
mod clock_grid;
mod clocks;
mod combined;
mod concurrency;
mod contradicted;
mod crash;
mod ends;
mod exchanged;
mod figures;
#[path = "../journal/fillable.rs"]
mod fillable;
mod foreign;
mod forms;
mod halting;
mod long_lists;
mod matching;
mod midnight;
mod overheard;
mod own_session;
mod owners;
mod panics;
mod policies;
mod probes;
mod protocol;
mod race;
mod reads;
mod refusals;
mod refused;
mod repeats;
mod rulings;
mod shared_orders;
mod spelling;
mod surplus;
mod tags;
mod timing;
mod unconfirmed;
