//! What holds with the protocol as it is.

use super::{
    Found, Lists, Model, SMALL,
    explore::{explore, explore_up_to},
};
use crate::{policy::KeyPolicy, rules::Rules};

/// So many states, with the worlds that are still to be looked at, are a gigabyte or two and half a minute.
const DEEP: usize = 1_000_000;

fn assert_safe(model: Model) -> Found {
    let found = explore(model, false);
    assert_eq!((found.duplicates, found.double_claims, found.wrong_claims), (0, 0, 0), "{found:?}");
    assert_eq!(found.undetected, 0, "{found:?}");
    println!("figures: states={}", found.states);
    found
}

/// The models of millions of states: all of them in a deep run, and as many as a debug build visits in a few seconds
/// in a plain one.
fn assert_safe_in_depth(model: Model) -> Found {
    assert_safe_up_to(usize::MAX, model)
}

/// The same for a model with more states than fit into the memory of a machine: those in the fewest moves.
fn assert_safe_up_to(most: usize, model: Model) -> Found {
    let deep = std::env::var_os("STEADFAST_DEEP").is_some();
    let found = explore_up_to(if deep { most } else { 20_000 }, model, false);
    assert_eq!((found.duplicates, found.double_claims, found.wrong_claims), (0, 0, 0), "{found:?}");
    assert_eq!(found.undetected, 0, "{found:?}");
    println!("figures: states={}", found.states);
    found
}

#[test]
fn two_intents_are_never_placed_three_times() {
    let found = assert_safe_in_depth(SMALL);
    assert_eq!(found.lost, 0, "nobody else placed orders");
    assert!(found.states > 10_000);
}

#[test]
fn refused_resends_are_no_exception() {
    assert_safe(Model { refusals: true, intents: 1, ..SMALL });
}

#[test]
fn three_intents_are_never_placed_four_times() {
    assert_safe_up_to(DEEP, Model { intents: 3, attempts: 1, ..SMALL });
}

#[test]
fn refusals_and_a_foreign_twin_change_nothing_for_two_intents() {
    assert_safe_in_depth(Model { refusals: true, ..SMALL });
    assert_safe_in_depth(Model { foreign: 1, ..SMALL });
}

#[test]
fn a_foreign_twin_costs_an_omission_and_never_a_duplicate() {
    let found = assert_safe(Model { intents: 1, foreign: 1, reads: 2, ..SMALL });
    assert!(found.lost > 0, "the price of a false `Exclusive`");
}

#[test]
fn beyond_the_bound_every_duplicate_is_flagged() {
    let found = explore(Model { bounded: false, intents: 1, ..SMALL }, false);
    assert!(found.duplicates > 0, "without a bound there is no safe resend: {found:?}");
    assert_eq!((found.double_claims, found.undetected), (0, 0), "{found:?}");
}

#[test]
fn a_crash_is_nothing_but_doubt() {
    let found = assert_safe(Model { intents: 1, crashes: 1, lossy: true, ..SMALL });
    assert_eq!(found.swapped, 0, "there is nobody to swap with");
    assert_safe_up_to(DEEP, Model { crashes: 1, ..SMALL });
    assert_safe_up_to(DEEP, Model { crashes: 1, lossy: true, ..SMALL });
}

#[test]
fn refusals_a_foreign_twin_and_a_crash_together_change_nothing() {
    let all = Model { refusals: true, foreign: 1, crashes: 1, lossy: true, ..SMALL };
    assert_safe_up_to(DEEP, Model { intents: 1, ..all });
    assert_safe_up_to(DEEP, all);
    assert_safe_up_to(DEEP, Model { intents: 3, attempts: 1, ..all });
}

/// What is known without a crash stays with its owner; what was learnt last may be lost, and twins may then swap.
#[test]
fn what_the_journal_holds_keeps_its_owner() {
    let one = Model { attempts: 1, crashes: 1, ..SMALL };
    assert_eq!(assert_safe(one).swapped, 0);
    let lossy = assert_safe(Model { lossy: true, ..one });
    assert!(lossy.swapped > 0, "the price of writing answers down lazily: {lossy:?}");
}

#[test]
fn one_after_the_other_needs_none_of_the_three_rules() {
    let rules = Rules { owner_wait: false, cohort: false, oldest_first: false, ..SMALL.rules };
    let serial = Model { key_policy: KeyPolicy::Serialize, rules, ..SMALL };
    let found = assert_safe(serial);
    assert_eq!(found.lost, 0);
    assert_safe_up_to(DEEP, Model { intents: 3, ..serial });
}

/// What is said in a 200 that says `error` is believed no more and no less than a 504: its order may exist, be late, or
/// be taken for a twin's, and where it is absent beyond the bound, later orders are reasoned about as before.
#[test]
fn answers_that_forbid_a_resend_place_nothing_twice_and_hide_nothing() {
    let nevers = Model { nevers: true, ..SMALL };
    assert_safe(Model { intents: 1, ..nevers });
    assert_safe(Model { attempts: 1, ..nevers });
    assert_safe_in_depth(nevers);
    assert_safe_up_to(DEEP, Model { intents: 3, attempts: 1, ..nevers });
    let found = explore(Model { bounded: false, intents: 1, ..nevers }, false);
    assert!(found.duplicates > 0, "without a bound there is no safe resend: {found:?}");
    assert_eq!((found.double_claims, found.undetected), (0, 0), "{found:?}");
}

/// Two orders that no record tells apart: neither is the other's, and neither is sent again in its place.
#[test]
fn what_no_record_tells_apart_is_nobodys() {
    let mixed = Model { mixed: true, ..SMALL };
    assert_safe(Model { attempts: 1, ..mixed });
    assert_safe_in_depth(mixed);
    assert_safe_up_to(DEEP, Model { refusals: true, ..mixed });
    assert_safe_up_to(DEEP, Model { crashes: 1, lossy: true, ..mixed });
    assert_safe_up_to(DEEP, Model { intents: 3, attempts: 1, ..mixed });
}

/// A login between a send and its check, whatever lists show afterwards.
#[test]
fn a_renewal_at_any_moment_changes_nothing() {
    for lists in [Lists::OfTheSession, Lists::OfTheAccount] {
        let renewed = Model { lists, ..SMALL };
        assert_safe(Model { intents: 1, ..renewed });
        assert_safe_up_to(DEEP, Model { attempts: 1, ..renewed });
        assert_safe_up_to(DEEP, renewed);
        assert_safe_up_to(DEEP, Model { mixed: true, ..renewed });
    }
}
