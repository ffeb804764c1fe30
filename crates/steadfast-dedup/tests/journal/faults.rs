//! Tests disks that fail while the process goes on.

use std::path::Path;

use steadfast_dedup::journal::{JournalError, Log};

use crate::{
    acknowledged, begun,
    disk::{Fault, How, SimDisk},
    intent_of, seen,
};

const PATH: &str = "/j/orders.journal";

fn intents(disk: &SimDisk) -> Vec<u64> {
    let found = Log::read(disk, Path::new(PATH)).unwrap().unwrap_or_default();
    found.iter().filter_map(intent_of).collect()
}

#[test]
fn the_first_failure_ends_a_log_and_it_is_never_tried_again() {
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
