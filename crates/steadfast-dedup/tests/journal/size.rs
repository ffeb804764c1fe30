//! Tests how large a log gets, and how long it takes to open.

use std::path::Path;

use steadfast_call::{Outcome, ext};
use steadfast_dedup::{
    IntentNo, TradingDay,
    journal::{Entry, Log, Record},
};

use crate::{acknowledged, begun, closed, deep, disk::SimDisk, entry, intent_of, lost, seen};

const PATH: &str = "/j/orders.journal";

#[test]
fn a_log_is_bounded_by_what_still_matters() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    // J16: ten million records.
    let orders = if deep() { 5_000_000 } else { 10_000 };
    let mut largest = 0;
    // A new day every thousand orders; of earlier days only orders in doubt are kept.
    for intent in 0..orders {
        let mut send = begun(intent);
        if let Record::Begun { day, .. } = &mut send.record {
            *day = TradingDay(i64::try_from(intent / 1_000).unwrap());
        }
        let in_doubt = intent % 5_000 == 0 && intent < 20_000;
        if intent % 1_000 == 0 {
            log.append_durably([&send]).unwrap();
        } else {
            log.append([&send]).unwrap();
        }
        if !in_doubt {
            log.append([&acknowledged(intent)]).unwrap();
        }
        largest = largest.max(log.size());
    }
    assert!(largest < 1_600_000, "{largest} bytes");
    drop(log);
    let start = tokio::time::Instant::now();
    let log = Log::open(disk.clone(), PATH).unwrap();
    println!("{} records, at most {largest} bytes, opened in {:?}", orders * 2, start.elapsed());
    let found: Vec<u64> = log.entries().filter_map(intent_of).collect();
    let first_of_last_day = orders - 1_000;
    assert!(found.iter().all(|&intent| intent % 5_000 == 0 || intent >= first_of_last_day));
    assert!([0, 5_000].iter().all(|intent| found.contains(intent)), "what is in doubt is never forgotten");
    assert!(disk.bytes(Path::new(PATH)).unwrap().len() < 400_000);
}

#[test]
fn a_log_that_still_matters_is_rewritten_when_it_has_doubled_and_no_sooner() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    let mut appended = 0;
    let mut rewritten = |log: &mut Log<SimDisk>| {
        let before = disk.operations();
        log.append([&begun(appended)]).unwrap();
        appended += 1;
        // Appending alone is one write.
        disk.operations() - before > 1
    };
    let mut rewrites = 0;
    while log.size() < 3 * 1024 * 1024 {
        rewrites += usize::from(rewritten(&mut log));
    }
    assert_eq!(rewrites, 2, "at one and two mebibytes");
    drop(log);
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    assert!((0..100).all(|_| !rewritten(&mut log)), "opening it has just written it");
}

/// Returns the orders in a log, by their accounts and numbers.
fn orders(log: &Log<SimDisk>) -> Vec<(String, u64)> {
    log.entries().filter_map(|entry| Some((entry.account.as_str().to_owned(), intent_of(entry)?))).collect()
}

#[test]
fn of_an_order_that_was_not_placed_nothing_is_kept() {
    let mut log = Log::open(SimDisk::default(), PATH).unwrap();
    log.append([&begun(0), &closed(0, Outcome::NotSent)]).unwrap();
    assert_eq!(log.entries().count(), 0);
    // A list may still refute any refusal.
    for outcome in [Outcome::NotExecuted, Outcome::Rejected] {
        log.append([&begun(0), &closed(0, outcome)]).unwrap();
        assert_eq!(log.entries().count(), 2);
        log.append([&entry(Record::Ruled { intent: IntentNo(0), order_id: None })]).unwrap();
        assert_eq!(log.entries().count(), 0);
    }
    // It is not kept after a late ruling of its caller either.
    let given_up =
        entry(Record::Unresolved { intent: IntentNo(0), reason: "budget".into(), candidates: Vec::new() });
    log.append([&begun(0), &lost(0), &given_up, &given_up]).unwrap();
    assert_eq!(log.entries().count(), 3, "only the latest reason is of interest");
    log.append([&entry(Record::Ruled { intent: IntentNo(0), order_id: None })]).unwrap();
    assert_eq!(log.entries().count(), 0);
}

#[test]
fn a_new_day_forgets_what_its_own_account_has_decided_and_listed() {
    let mut log = Log::open(SimDisk::default(), PATH).unwrap();
    let of = |account: &str, mut entry: Entry| {
        entry.account = ext::Account::new(account);
        entry
    };
    for account in ["a", "b"] {
        let mut named = begun(2);
        if let Record::Begun { name, .. } = &mut named.record {
            *name = Some(ext::IntentId::new("n"));
        }
        let entries = [begun(0), acknowledged(0), begun(1), lost(1), named, acknowledged(2), seen("o0")];
        for entry in entries {
            log.append([&of(account, entry)]).unwrap();
        }
    }
    let mut next = begun(3);
    if let Record::Begun { day, .. } = &mut next.record {
        *day = TradingDay(2);
    }
    log.append([&of("a", next), &of("a", acknowledged(3))]).unwrap();
    let kept = |account: &str, numbers: &[u64]| {
        let held = orders(&log).into_iter().filter(|(of, _)| of == account).map(|(_, number)| number);
        assert_eq!(held.collect::<Vec<_>>(), numbers, "{account}");
    };
    kept("a", &[1, 2, 3]);
    kept("b", &[0, 1, 2]);
    let lists: Vec<_> = log.entries().filter(|entry| matches!(entry.record, Record::Seen { .. })).collect();
    assert!(matches!(*lists, [list] if list.account.as_str() == "b"));
}

#[test]
fn of_an_accounts_changes_the_last_is_kept_in_its_place() {
    let of = |account: &str, mut entry: Entry| {
        entry.account = ext::Account::new(account);
        entry
    };
    let change = |account| of(account, entry(Record::Changed));
    let written = [begun(0), change(""), change("b"), begun(1), change(""), begun(2)];
    let kept = Entry::still_matter(written);
    assert_eq!(kept, [begun(0), change("b"), begun(1), change(""), begun(2)]);
}

/// Regression: a refused order was decided, and counted as decided for ever. So a hundred thousand later names dropped it,
/// although it had been sent again and was in doubt: the next process did not look for it, and its name was free.
#[test]
fn an_order_in_doubt_after_a_refusal_makes_no_room_for_later_names() {
    let named = |intent: u64, index: usize| {
        let mut send = begun(intent);
        if let Record::Begun { attempt, name, .. } = &mut send.record {
            attempt.index = index;
            *name = Some(ext::IntentId::new(format!("n{intent}")));
        }
        send
    };
    let mut second = lost(0);
    if let Record::Closed { attempt, .. } = &mut second.record {
        attempt.index = 1;
    }
    let given_up =
        entry(Record::Unresolved { intent: IntentNo(0), reason: "budget".into(), candidates: Vec::new() });
    // Refused, sent again, lost, and given up.
    let first = [named(0, 0), closed(0, Outcome::NotExecuted), named(0, 1), second, given_up];
    let later = (1..=100_001).flat_map(|intent| [named(intent, 0), acknowledged(intent)]);
    let kept = Entry::still_matter(first.into_iter().chain(later));
    let kept: Vec<u64> = kept.iter().filter_map(intent_of).collect();
    assert!(!kept.contains(&1), "the oldest that was decided makes room");
    assert!(kept.starts_with(&[0, 0]), "what is in doubt is never forgotten");
}

#[test]
fn a_log_may_stand_where_the_process_does() {
    let mut log = Log::open(SimDisk::default(), "orders.journal").unwrap();
    log.append_durably([&begun(0)]).unwrap();
}
