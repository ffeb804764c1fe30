//! What goes wrong when a rule is left out: the model can fail.

use super::{Model, SMALL, explore::explore};
use crate::{policy::KeyPolicy, rules::Rules};

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

/// Orders of one key one after the other still need both stamps.
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
