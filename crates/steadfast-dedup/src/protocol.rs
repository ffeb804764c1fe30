//! The rules about orders, as a pure state machine: no clock, no lock, no task and no input or output.
//!
//! [`order_protocol::OrderProtocol`] takes one event after another. Every other file has one subject: a kind of state,
//! or the rules for one question. To read them in order:
//!
//! 1. In and out: [`event`], [`effect`], [`order_event`], [`resolution`]; [`order_protocol`] hands each event to its rule.
//! 2. The state, each part with its owner: [`intents`] with [`intent`], [`phase`], [`attempt`] and [`doubt`]; [`keys`];
//!    [`listed_orders`]; [`reads`]; [`watches`]; [`rejected_names`]; [`sessions`]; [`fidelity`]; [`tags`]; [`timeline`].
//! 3. A send and its answer: [`sending`]; what may leave: [`may_send`]; orders one after the other: [`serialize`]; the end
//!    of a call: [`call_end`].
//! 4. A list: [`planning`] and [`schedule`] say when it is read, [`reading`] follows the read, [`list_evidence`] takes the
//!    list in; [`matcher`], [`candidates`] and [`by_tag`] say which orders it can show; then [`claim`] or [`absence`] draws
//!    the conclusion, and [`deciding`] ends an intent; [`told_candidates`] says what its caller is told.
//! 5. Answers that need a list: 401 and 429 in [`refusal`], [`refusal_check`] and [`unconfirmed`], others in [`rejection`],
//!    wrong order ids in [`disbelief`] and [`mismatch`].
//! 6. After the end: [`late`], [`late_owner`], [`alike`] and [`held_back`] for orders that appear, [`manual`] for rulings,
//!    [`last_look`] for a shutdown.
//! 7. Sessions, days and processes that are over: [`past_sessions`], [`day_clock`], [`overnight`], [`restart`].
//!
//! [`query`] answers the questions of the layers, [`rules`] names the rules that the model takes out one by one.

pub(crate) mod absence;
pub(crate) mod alike;
pub(crate) mod attempt;
pub(crate) mod by_tag;
pub(crate) mod call_end;
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
pub(crate) mod late_owner;
pub(crate) mod list_evidence;
pub(crate) mod listed_orders;
pub(crate) mod manual;
pub(crate) mod matcher;
pub(crate) mod may_send;
pub(crate) mod mismatch;
pub(crate) mod order_event;
pub(crate) mod order_protocol;
pub(crate) mod overnight;
pub(crate) mod past_sessions;
pub(crate) mod phase;
pub(crate) mod planning;
pub(crate) mod query;
pub(crate) mod read_fault;
pub(crate) mod reading;
pub(crate) mod reads;
pub(crate) mod refusal;
pub(crate) mod refusal_check;
pub(crate) mod rejected_names;
pub(crate) mod rejection;
pub(crate) mod resolution;
pub(crate) mod restart;
pub(crate) mod rules;
pub(crate) mod ruling;
pub(crate) mod schedule;
pub(crate) mod searches;
pub(crate) mod sending;
pub(crate) mod serialize;
pub(crate) mod sessions;
pub(crate) mod tags;
pub(crate) mod tally;
pub(crate) mod timeline;
pub(crate) mod told_candidates;
pub(crate) mod trace;
pub(crate) mod unconfirmed;
pub(crate) mod visibility;
pub(crate) mod wake;
pub(crate) mod watches;
pub(crate) mod work;
