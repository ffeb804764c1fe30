//! Shows what holds with the whole protocol.

use super::{
    Echo, Found, Lists, Model, SMALL,
    explore::{Next, explore, explore_up_to},
};
use crate::{protocol::rules::Rules, settings::policy::KeyPolicy};

/// The number of states that take a few seconds.
const DEEP: usize = 250_000;

/// More states than this would need more memory than a large machine has.
const CAMPAIGN: usize = 220_000_000;

/// How far a run goes: `STEADFAST_DEEP=1` is what CI has time for, and `STEADFAST_DEEP=campaign` visits every state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Plain,
    Deep,
    Campaign,
}

impl Reach {
    fn of_this_run() -> Self {
        match std::env::var_os("STEADFAST_DEEP") {
            None => Self::Plain,
            Some(word) if word == "campaign" => Self::Campaign,
            Some(_) => Self::Deep,
        }
    }
}

fn assert_safe(model: Model) -> Found {
    assert_safe_up_to(usize::MAX, Next::Nearest, model)
}

/// Checks models with millions of states: all of them in a deep run, otherwise as many as a debug build visits in a
/// few seconds.
fn assert_safe_in_depth(model: Model) -> Found {
    match Reach::of_this_run() {
        Reach::Plain => assert_safe_up_to(20_000, Next::Nearest, model),
        Reach::Deep | Reach::Campaign => assert_safe_up_to(usize::MAX, Next::Latest, model),
    }
}

/// Checks models with more states than a deep run has time for: all of them in a campaign, otherwise the nearest.
fn assert_safe_at_length(model: Model) -> Found {
    match Reach::of_this_run() {
        Reach::Plain => assert_safe_up_to(20_000, Next::Nearest, model),
        Reach::Deep => assert_safe_up_to(DEEP, Next::Nearest, model),
        Reach::Campaign => assert_safe_up_to(CAMPAIGN, Next::Latest, model),
    }
}

/// Checks one of many models that differ little: all of its states in a campaign, otherwise the nearest.
fn assert_safe_in_part(model: Model) -> Found {
    match Reach::of_this_run() {
        Reach::Plain => assert_safe_up_to(3_000, Next::Nearest, model),
        Reach::Deep => assert_safe_up_to(DEEP / 4, Next::Nearest, model),
        Reach::Campaign => assert_safe_up_to(CAMPAIGN, Next::Latest, model),
    }
}

fn assert_safe_up_to(most: usize, next: Next, model: Model) -> Found {
    let found = explore_up_to(most, next, model, false);
    assert_eq!((found.duplicates, found.double_claims, found.wrong_claims), (0, 0, 0), "{found:?}");
    assert_eq!(found.undetected, 0, "{found:?}");
    println!("figures: states={}", found.states);
    let reached = if found.cut { "cut at" } else { "all of" };
    println!("{reached} {} states: {model:?}", found.states);
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

/// A refusal that a list refutes leaves one order, and one without a later check is reported when it appears.
#[test]
fn o05_refusals_after_placement_place_nothing_twice() {
    let refuted = Model { refusals: true, refuted: true, ..SMALL };
    assert_safe(Model { intents: 1, ..refuted });
    assert_safe_in_depth(Model { attempts: 1, ..refuted });
    assert_safe_at_length(refuted);
    assert_safe_at_length(Model { crashes: 1, lossy: true, intents: 1, ..refuted });
    assert_safe_at_length(Model { foreign: 1, ..refuted });
}

#[test]
fn three_intents_are_never_placed_four_times() {
    assert_safe_in_depth(Model { intents: 3, attempts: 1, ..SMALL });
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
    assert_safe_at_length(Model { crashes: 1, ..SMALL });
    assert_safe_at_length(Model { crashes: 1, lossy: true, ..SMALL });
}

#[test]
fn refusals_a_foreign_twin_and_a_crash_together_change_nothing() {
    let all = Model { refusals: true, foreign: 1, crashes: 1, lossy: true, ..SMALL };
    assert_safe_at_length(Model { intents: 1, ..all });
    assert_safe_at_length(all);
    assert_safe_at_length(Model { intents: 3, attempts: 1, ..all });
}

/// Knowledge survives without a crash; the latest may be lost in one, and twins may then swap.
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
    assert_safe_at_length(Model { intents: 3, ..serial });
}

/// A 200 that says `error` counts like a 504: its order may exist, be late, or be taken for a twin's. Where it is
/// absent beyond the bound, conclusions about later orders are drawn as before.
#[test]
fn answers_that_forbid_a_resend_place_nothing_twice_and_hide_nothing() {
    let nevers = Model { nevers: true, ..SMALL };
    assert_safe(Model { intents: 1, ..nevers });
    assert_safe(Model { attempts: 1, ..nevers });
    assert_safe_in_depth(nevers);
    assert_safe_at_length(Model { intents: 3, attempts: 1, ..nevers });
    let found = explore(Model { bounded: false, intents: 1, ..nevers }, false);
    assert!(found.duplicates > 0, "without a bound there is no safe resend: {found:?}");
    assert_eq!((found.double_claims, found.undetected), (0, 0), "{found:?}");
}

/// Two orders that no record tells apart: neither is taken for the other, and neither is sent again in its place.
#[test]
fn what_no_record_tells_apart_is_nobodys() {
    let mixed = Model { mixed: true, ..SMALL };
    assert_safe(Model { attempts: 1, ..mixed });
    // Thirty million states: half the time of all models.
    assert_safe_at_length(mixed);
    assert_safe_at_length(Model { refusals: true, ..mixed });
    assert_safe_at_length(Model { crashes: 1, lossy: true, ..mixed });
    assert_safe_at_length(Model { intents: 3, attempts: 1, ..mixed });
}

/// A login between a send and its check, whatever lists show afterwards.
#[test]
fn a_renewal_at_any_moment_changes_nothing() {
    for lists in [Lists::OfTheSession, Lists::OfTheAccount] {
        let renewed = Model { lists, ..SMALL };
        for own in [false, true] {
            let renewed = Model { own, ..renewed };
            assert_safe(Model { intents: 1, ..renewed });
            assert_safe_at_length(Model { attempts: 1, ..renewed });
            assert_safe_at_length(renewed);
            assert_safe_at_length(Model { mixed: true, ..renewed });
        }
    }
}

/// No order is placed twice or taken for another's, in whatever form lists show tags.
#[test]
fn s73_tags_change_nothing_but_what_is_certain() {
    for echo in [Echo::Nothing, Echo::Whole, Echo::Cut, Echo::Some, Echo::Copied] {
        let tagged = Model { echo: Some(echo), ..SMALL };
        assert_safe_in_part(Model { intents: 1, foreign: 1, ..tagged });
        assert_safe_in_part(tagged);
        assert_safe_in_part(Model { mixed: true, ..tagged });
        assert_safe_in_part(Model { intents: 1, crashes: 1, lossy: true, refusals: true, ..tagged });
    }
}

/// In a shared account, a stranger's order is never taken for ours.
#[test]
fn s73_with_a_tag_a_shared_account_costs_no_order() {
    for echo in [Echo::Nothing, Echo::Whole, Echo::Cut, Echo::Some, Echo::Copied] {
        let shared = Model { shared: true, foreign: 1, echo: Some(echo), ..SMALL };
        let found = assert_safe_in_part(Model { intents: 1, ..shared });
        assert_eq!(found.lost, 0, "{found:?}");
        assert_safe_in_part(shared);
        assert_safe_in_part(Model { mixed: true, ..shared });
        assert_safe_in_part(Model { attempts: 1, lists: Lists::OfTheAccount, ..shared });
    }
}

/// Tags that a service copies from one order to the next: the nearest states in which planted bugs show what would come
/// of a tag that decided too much.
#[test]
fn s74_a_copied_tag_places_nothing_twice_and_takes_no_strangers_order() {
    let copied = Model { shared: true, echo: Some(Echo::Copied), ..SMALL };
    for model in
        [Model { intents: 1, foreign: 1, ..copied }, copied, Model { attempts: 1, foreign: 1, ..copied }]
    {
        assert_safe_up_to(30_000, Next::Nearest, model);
    }
}
