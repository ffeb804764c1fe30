//! The gateway against the specification, one module for each of its sections.
//!
//! Every test was written from the specification alone, before the gateway's source was seen, so that the two
//! do not share a misreading. `crates/steadfast-spec/traceability.toml` lists which test covers which
//! sentence. Where the specification says "not shown", the reading is chosen once, in the harness (`world`,
//! `endpoints`, `login`), never in a test. Section 6 names only gaps and has no module.
#![expect(clippy::expect_used, reason = "a harness fails by panicking")]

mod answer;
mod call;
mod endpoints;
mod form;
mod login;
mod login_page;
mod world;

mod section_1;
mod section_1_envelope;
mod section_2;
mod section_3;
mod section_4_1;
mod section_4_2;
mod section_4_3;
mod section_4_4;
mod section_4_5;
mod section_5;
mod section_5_sessions;
mod section_7;
mod section_7_faults;
mod section_8;
mod section_8_enforcers;
mod section_8_scopes;
mod section_9;
