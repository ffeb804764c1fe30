//! Shows that the model fails when a rule is left out.

use super::{Lists, Model, SMALL, explore::explore};
use crate::{protocol::rules::Rules, settings::policy::KeyPolicy};

/// Takes one rule out and expects the model to notice.
fn assert_needed(rules: Rules, reads: usize) {
    let found = explore(Model { rules: Rules { negatives: 1, ..rules }, reads, ..SMALL }, true);
    assert!(found.duplicates + found.double_claims > 0, "{found:?}");
    println!("{}", found.trace.unwrap_or_default());
}

#[test]
fn without_the_owner_wait_an_order_is_claimed_twice() {
    assert_needed(Rules { owner_wait: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn without_the_cohort_rule_an_order_is_placed_twice() {
    assert_needed(Rules { cohort: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn newest_first_places_an_order_twice() {
    assert_needed(Rules { oldest_first: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn a_baseline_stamped_at_the_reads_start_places_an_order_twice() {
    assert_needed(Rules { seen_at_completion: false, ..Rules::PROTOCOL }, 1);
}

#[test]
fn evidence_stamped_at_the_reads_end_places_an_order_twice() {
    assert_needed(Rules { evidence_at_start: false, ..Rules::PROTOCOL }, 1);
}

/// Orders of one key that are sent one after the other still need both stamps.
#[test]
fn serialized_sends_need_the_stamps_all_the_same() {
    for rules in [
        Rules { seen_at_completion: false, ..SMALL.rules },
        Rules { evidence_at_start: false, ..SMALL.rules },
    ] {
        let found = explore(Model { key_policy: KeyPolicy::Serialize, rules, ..SMALL }, true);
        assert!(found.duplicates + found.double_claims > 0, "{found:?}");
        println!("{}", found.trace.unwrap_or_default());
    }
}

/// A believed refusal of a placed order leads to a second one.
#[test]
fn o05_without_a_look_after_a_refusal_an_order_is_placed_twice() {
    let rules = Rules { refusals_checked: false, ..SMALL.rules };
    let found = explore(Model { refusals: true, refuted: true, intents: 1, rules, ..SMALL }, true);
    assert!(found.duplicates > 0, "{found:?}");
    println!("{}", found.trace.unwrap_or_default());
}

/// A list of one session shows first of all that session's orders.
#[test]
fn without_the_session_rule_an_order_is_placed_twice() {
    let rules = Rules { session_first: false, ..SMALL.rules };
    let found = explore(Model { lists: Lists::OfTheSession, rules, ..SMALL }, true);
    assert!(found.duplicates > 0, "{found:?}");
    println!("{}", found.trace.unwrap_or_default());
}

/// Two orders may differ in a field that no record shows.
#[test]
fn without_the_likeness_rule_a_caller_is_told_of_anothers_order() {
    let rules = Rules { told_apart: false, ..SMALL.rules };
    let found = explore(Model { mixed: true, rules, ..SMALL }, true);
    assert!(found.wrong_claims > 0, "{found:?}");
    println!("{}", found.trace.unwrap_or_default());
}
