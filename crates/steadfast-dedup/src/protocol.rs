//! The rules about orders, as a pure state machine: no clock, no lock, no task and no input or output.
//!
//! [`order_protocol::OrderProtocol`] takes one event after another. Every other file has one subject: a kind of state,
//! or the rules for one question.

pub(crate) mod absence;
pub(crate) mod alike;
pub(crate) mod attempt;
pub(crate) mod bygone;
pub(crate) mod candidates;
pub(crate) mod claim;
pub(crate) mod day_clock;
pub(crate) mod deciding;
pub(crate) mod disbelief;
pub(crate) mod doubt;
pub(crate) mod effect;
pub(crate) mod event;
pub(crate) mod fidelity;
pub(crate) mod held_back;
#[cfg(test)]
pub(crate) mod inspect;
pub(crate) mod intent;
pub(crate) mod intents;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod last_look;
pub(crate) mod late;
pub(crate) mod listed_orders;
pub(crate) mod manual;
pub(crate) mod matcher;
pub(crate) mod mismatch;
pub(crate) mod order_event;
pub(crate) mod order_protocol;
pub(crate) mod overnight;
pub(crate) mod planning;
pub(crate) mod query;
pub(crate) mod read_fault;
pub(crate) mod reading;
pub(crate) mod reads;
pub(crate) mod refusal;
pub(crate) mod rejected_names;
pub(crate) mod rejection;
pub(crate) mod resolution;
pub(crate) mod restart;
pub(crate) mod rules;
pub(crate) mod ruling;
pub(crate) mod schedule;
pub(crate) mod sending;
pub(crate) mod serialize;
pub(crate) mod sessions;
pub(crate) mod tally;
pub(crate) mod timeline;
pub(crate) mod trace;
pub(crate) mod visibility;
pub(crate) mod wake;
pub(crate) mod watches;
