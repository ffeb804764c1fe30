//! Runs the single flight under many orders of threads, chosen by a model checker.
//!
//! Each schedule runs a few threads that ask for a token, send with it, are refused, wait and give up, while logins
//! run, fail or are dropped. A thread that waits for a login that was never launched blocks for good, which the checker
//! reports as a deadlock.

mod world;

use std::sync::Arc;

use shuttle::{
    rand::{Rng, thread_rng},
    sync::atomic::Ordering::SeqCst,
    thread,
};

use self::world::{Login, Mistake, World};
use crate::error::AuthErrorKind;

/// How many schedules each test runs; ten times as many with `STEADFAST_DEEP=1`.
const SCHEDULES: usize = 25_000;
const HOUR_MS: i64 = 3_600_000;

/// Half of the schedules are random, half have a few well-placed changes of thread.
fn explore(schedule: impl Fn() + Send + Sync + Clone + 'static) {
    let times = if std::env::var_os("STEADFAST_DEEP").is_some() { 10 * SCHEDULES } else { SCHEDULES };
    shuttle::check_random(schedule.clone(), times / 2);
    shuttle::check_pct(schedule, times / 2, 3);
    println!("figures: schedules={times} models=1");
}

/// Looks for a mistake in the same schedules each time, so that the result is reproducible.
fn look_for(schedule: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random_with_seed(schedule, 1, 20_000);
}

fn one_login(mistake: Mistake) {
    let world = World::cold(Login::Succeeds, mistake);
    let ends = world.storm(3, 2);
    assert!(ends.iter().all(|end| *end == Ok(1)), "one token for all: {ends:?}");
    assert_eq!(world.logins(), 1, "one login for all");
}

fn one_failure(mistake: Mistake) {
    let world = World::cold(Login::Fails, mistake);
    let ends = world.storm(3, 2);
    assert!(ends.iter().all(|end| *end == Err(AuthErrorKind::Latched)), "one failure for all: {ends:?}");
    assert_eq!(world.logins(), 1, "one login for all");
}

fn dropped_driver(mistake: Mistake) {
    let world = World::cold(Login::Dropped, mistake);
    for end in world.storm(3, 2) {
        assert!(matches!(end, Ok(1) | Err(AuthErrorKind::Unavailable)), "{end:?}");
    }
    assert!(world.logins() <= 1, "after an unknown end logins rest");
}

fn late_refusal(mistake: Mistake) {
    let world = World::working(Login::Succeeds, mistake, HOUR_MS);
    let roll_over = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.accepts_from.store(2, SeqCst))
    };
    let ends = world.storm(3, 2);
    roll_over.join().unwrap();
    assert!(ends.iter().all(Result::is_ok), "a late 401 costs nobody anything: {ends:?}");
    assert!(world.logins() <= 2, "one login for each token");
    assert_eq!(world.attach(), world.generation(), "the newest token is not withdrawn");
}

fn failed_renewal(mistake: Mistake) {
    // An hour before the end no request waits for the renewal; in the last minute all do.
    let age = if thread_rng().gen_bool(0.5) { 23 * HOUR_MS } else { 24 * HOUR_MS - 30_000 };
    let world = World::working(Login::Fails, mistake, age);
    let ends = world.storm(3, 2);
    assert!(ends.iter().all(|end| *end == Ok(1)), "the valid token goes on: {ends:?}");
    assert_eq!(world.attach(), Some(1), "the valid token is still there");
}

#[test]
fn one_login_serves_everybody_who_waits() {
    explore(|| one_login(Mistake::None));
}

#[test]
fn one_failure_is_everybodys() {
    explore(|| one_failure(Mistake::None));
}

#[test]
fn a_dropped_driver_strands_nobody() {
    explore(|| dropped_driver(Mistake::None));
}

#[test]
fn a_late_401_for_an_old_token_never_clears_the_new_one() {
    explore(|| late_refusal(Mistake::None));
}

#[test]
fn a_failed_renewal_never_displaces_a_valid_token() {
    explore(|| failed_renewal(Mistake::None));
}

#[test]
#[should_panic(expected = "for all")]
fn a_login_for_each_waiter_is_found() {
    look_for(|| one_login(Mistake::LoginPerWaiter));
}

#[test]
#[should_panic(expected = "whoever waits is told")]
fn a_failure_that_only_one_waiter_is_told_is_found() {
    look_for(|| one_failure(Mistake::FailureToldToOne));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_driver_that_is_dropped_without_a_word_is_found() {
    look_for(|| dropped_driver(Mistake::DroppedDriverIsForgotten));
}

#[test]
#[should_panic(expected = "a late 401")]
fn a_late_401_that_is_held_against_the_new_token_is_found() {
    look_for(|| late_refusal(Mistake::RefusalOfTheCurrentToken));
}

#[test]
#[should_panic(expected = "the valid token")]
fn a_failed_renewal_that_takes_the_valid_token_along_is_found() {
    look_for(|| failed_renewal(Mistake::FailedRenewalDisplaces));
}
