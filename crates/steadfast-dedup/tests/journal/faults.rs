//! Tests disks that fail while the process goes on.

use std::{io, path::Path, time::Duration};

use steadfast_call::ext;
use steadfast_dedup::journal::{FileJournal, Journal, JournalError, Log};

use crate::{
    acknowledged, begun,
    disk::{Fault, How, SimDisk},
    fillable::Fillable,
    intent_of, seen,
};

const PATH: &str = "/j/orders.journal";

fn intents(disk: &SimDisk) -> Vec<u64> {
    let found = Log::read(disk, Path::new(PATH)).unwrap().unwrap_or_default();
    found.iter().filter_map(intent_of).collect()
}

#[test]
fn the_first_failure_ends_a_log_and_it_is_never_tried_again() {
    // A disk that is full for a moment does not end it.
    for how in [How::Full, How::Broken] {
        for lasts in [false, true] {
            let whole = SimDisk::default();
            write_all(&whole);
            for at in 0..whole.operations() {
                let disk = SimDisk::with_fault(Fault { at, how, lasts });
                let durable = write_all(&disk);
                // All that was reported durable is in what the process still sees.
                let found = intents(&disk);
                assert!(durable.iter().all(|intent| found.contains(intent)), "{how:?} at {at}: {durable:?}");
            }
        }
    }
}

/// Writes until something fails; returns what was reported durable.
fn write_all(disk: &SimDisk) -> Vec<u64> {
    let mut durable = Vec::new();
    let Ok(mut log) = Log::open(disk.clone(), PATH) else { return durable };
    for intent in 0..3 {
        let told = log
            .append([&seen("a")])
            .and_then(|()| log.append_durably([&begun(intent)]))
            .inspect(|()| durable.push(intent))
            .and_then(|()| log.append([&acknowledged(intent)]));
        if told.is_err() && log.is_waiting() {
            log.append_durably([&begun(9)]).unwrap();
            durable.push(9);
            break;
        }
        if told.is_err() {
            let before = disk.operations();
            assert!(matches!(log.append_durably([&begun(9)]), Err(JournalError::Poisoned)));
            assert!(matches!(log.append([&seen("z")]), Err(JournalError::Poisoned)));
            assert_eq!(disk.operations(), before, "the disk is not asked again");
            break;
        }
    }
    durable
}

#[test]
fn a_full_disk_is_told_by_its_name() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    disk.set_fault(How::Full, 0, true);
    let error = log.append_durably([&begun(0)]).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert_eq!(source, std::io::Error::from(std::io::ErrorKind::StorageFull).to_string());
}

/// Regression: a disk that was full for a moment ended the log for good, so that no order left until a restart.
#[test]
fn what_found_the_disk_full_is_written_before_what_comes_later() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    log.append_durably([&begun(0)]).unwrap();
    let before = disk.bytes(Path::new(PATH)).unwrap();
    disk.set_fault(How::Full, 0, false);
    log.append_durably([&seen("a"), &begun(1)]).unwrap_err();
    assert!(log.is_waiting());
    assert_eq!(disk.bytes(Path::new(PATH)).unwrap(), before, "half of it was written, and is cut off");
    disk.set_fault(How::Full, 0, false);
    log.append([&seen("b")]).unwrap_err();
    assert!(log.is_waiting());
    log.append([]).unwrap();
    assert!(!log.is_waiting());
    log.append_durably([&begun(2)]).unwrap();
    let written: Vec<_> = log.entries().cloned().collect();
    assert_eq!(written, [begun(0), seen("a"), begun(1), seen("b"), begun(2)]);
    drop(log);
    let found = Log::open(disk, PATH).unwrap();
    assert_eq!(found.entries().cloned().collect::<Vec<_>>(), written);
}

#[test]
fn a_full_disk_that_cannot_be_cut_and_synced_ends_the_log() {
    // The write, then the cut, then its sync.
    for (at, how) in [(2, How::Full), (2, How::Broken), (3, How::Full), (3, How::Broken)] {
        let disk = SimDisk::default();
        let mut log = Log::open(disk.clone(), PATH).unwrap();
        log.append_durably([&begun(0)]).unwrap();
        disk.set_fault(How::Full, 0, false);
        disk.set_second_fault(how, at);
        log.append_durably([&begun(1)]).unwrap_err();
        assert!(!log.is_waiting(), "{how:?} at {at}");
        assert!(matches!(log.append_durably([&begun(2)]), Err(JournalError::Poisoned)));
    }
}

#[test]
fn a_log_waits_with_no_more_than_a_few_mebibytes() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    let long = seen(&"x".repeat(1_000_000));
    for waits in [true, true, true, true, false] {
        disk.set_fault(How::Full, 0, false);
        log.append([&long]).unwrap_err();
        assert_eq!(log.is_waiting(), waits);
    }
}

/// Regression: a record of more than a mebibyte was written, and all later ones could not be read again.
#[test]
fn a_record_that_could_not_be_read_again_is_not_written() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    let before = disk.bytes(Path::new(PATH));
    let error = log.append_durably([&seen(&"x".repeat(1_100_000))]).unwrap_err();
    assert!(matches!(error, JournalError::TooLong { length: 1_100_000.., .. }), "{error:?}");
    assert_eq!(disk.bytes(Path::new(PATH)), before);
}

#[test]
fn short_and_interrupted_writes_are_finished() {
    for longest in [1, 2, 7, 64] {
        let disk = SimDisk::default().short_writes(longest);
        let mut log = Log::open(disk.clone(), PATH).unwrap();
        for intent in 0..3 {
            log.append_durably([&begun(intent)]).unwrap();
        }
        drop(log);
        assert_eq!(intents(&disk), [0, 1, 2], "{longest} bytes at a time");
    }
}

#[test]
fn no_room_for_a_successor_leaves_the_log_as_it_is() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    log.append_durably([&begun(0)]).unwrap();
    let before = log.size();
    // Grows until the rewrite is due; creating the successor fails.
    let long = seen(&"x".repeat(100_000));
    for _ in 0..10 {
        log.append([&long]).unwrap();
    }
    assert!(log.size() > before + 1_000_000);
    disk.set_fault(How::Full, 1, false);
    log.append([&long]).unwrap();
    log.append_durably([&begun(1)]).unwrap();
    drop(log);
    assert_eq!(intents(&disk), [0, 1]);
}

#[test]
fn nobody_opens_a_log_twice() {
    let disk = SimDisk::default();
    let log = Log::open(disk.clone(), PATH).unwrap();
    assert!(matches!(Log::open(disk.clone(), PATH), Err(JournalError::InUse { .. })));
    assert!(Log::read(&disk, Path::new(PATH)).unwrap().is_some(), "reading needs no lock");
    drop(log);
    assert!(Log::open(disk, PATH).is_ok());
}

/// Regression: nothing said that the journal had failed, before an order was refused.
#[tokio::test]
async fn a_journal_says_why_it_cannot_be_written_and_asks_for_room_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let disk = Fillable::default();
    let journal = FileJournal::on(disk.clone(), &path).unwrap();
    journal.append_durably(begun(0)).await.unwrap();
    assert!(journal.failure().is_none());
    disk.fill(100);
    journal.append_durably(begun(1)).await.unwrap_err();
    let why = journal.failure().unwrap();
    assert!(matches!(&why, JournalError::Io { path: it, source, .. }
        if *it == path && source.kind() == io::ErrorKind::StorageFull));
    disk.make_room();
    while journal.failure().is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    journal.append_durably(begun(2)).await.unwrap();
    // Entries that wait for room are written once more when the journal is dropped.
    disk.fill(100);
    journal.append(seen("a"));
    while journal.failure().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    disk.make_room();
    drop(journal);
    assert_eq!(FileJournal::read(&path).unwrap().unwrap(), [begun(0), begun(1), begun(2), seen("a")]);
}

#[tokio::test]
async fn a_journal_that_was_moved_says_so_and_goes_on_in_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let journal = FileJournal::open(&path).unwrap();
    std::fs::rename(&path, folder.path().join("aside")).unwrap();
    for _ in 0..2 {
        journal.append_durably(begun(0)).await.unwrap_err();
        assert!(matches!(journal.failure(), Some(JournalError::Displaced { path: it }) if it == path));
    }
}

#[tokio::test]
async fn a_record_that_is_too_long_is_refused_alone() {
    let folder = tempfile::tempdir().unwrap();
    let journal = FileJournal::open(folder.path().join("orders.journal")).unwrap();
    let mut long = begun(0);
    long.account = ext::Account::new("x".repeat(1_100_000));
    let (refused, written) = tokio::join!(journal.append_durably(long), journal.append_durably(begun(1)));
    assert!(matches!(refused, Err(JournalError::TooLong { .. })), "{refused:?}");
    written.unwrap();
    assert!(journal.failure().is_none());
}
