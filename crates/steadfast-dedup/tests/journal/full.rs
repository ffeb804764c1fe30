//! Tests logs that are opened on a full disk.

use std::path::Path;

use steadfast_dedup::journal::{Disk, JournalError, Log};

use crate::{
    begun,
    disk::{Fault, How, SimDisk},
    intent_of, seen,
};

const PATH: &str = "/j/orders.journal";

/// Later than all that a test does.
const NEVER: u64 = 1_000_000;

/// Returns a disk with the log of an earlier process, which has sent one order.
fn earlier() -> SimDisk {
    let disk = SimDisk::default();
    Log::open(disk.clone(), PATH).unwrap().append_durably([&begun(0)]).unwrap();
    disk
}

fn intents(log: &Log<SimDisk>) -> Vec<u64> {
    log.entries().filter_map(intent_of).collect()
}

/// Regression: the sidecar did not start on a full disk, so that no cancel got out.
#[test]
fn a_log_on_a_full_disk_tells_what_it_holds_and_goes_on_once_there_is_room() {
    let disk = earlier();
    let before = disk.bytes(Path::new(PATH));
    disk.set_fault(How::Full, 0, true);
    assert!(Log::open(disk.clone(), PATH).is_err(), "without a word about waiting it fails");

    let (mut log, full) = Log::open_even_if_full(disk.clone(), PATH).unwrap();
    assert!(matches!(full, Some(JournalError::Io { .. })), "{full:?}");
    assert_eq!(intents(&log), [0]);
    let salt = log.salt();
    for _ in 0..3 {
        assert!(log.append_durably([&begun(1), &seen("a")]).is_err());
        assert!(log.is_waiting());
    }
    assert_eq!(disk.bytes(Path::new(PATH)), before, "what was found stays");
    let second = Log::open_even_if_full(disk.clone(), PATH);
    assert!(matches!(second, Err(JournalError::InUse { .. })), "the lock is held");

    disk.set_fault(How::Full, NEVER, false);
    log.append([]).unwrap();
    assert!(!log.is_waiting());
    log.append_durably([&begun(2)]).unwrap();
    assert_eq!(log.salt(), salt);
    drop(log);
    let found = Log::open(disk, PATH).unwrap();
    assert_eq!(intents(&found), [0, 1, 1, 1, 2]);
}

#[test]
fn a_disk_that_is_full_or_broken_at_any_step_of_opening_loses_no_order() {
    let disk = earlier();
    let before = disk.operations();
    Log::open_even_if_full(disk.clone(), PATH).unwrap();
    let (steps, mut waited) = (disk.operations() - before, 0);
    assert!(steps > 4, "{steps}");
    for how in [How::Full, How::Broken] {
        for at in 0..steps {
            let disk = earlier();
            disk.set_fault(how, at, false);
            if let Ok((mut log, full)) = Log::open_even_if_full(disk.clone(), PATH) {
                assert_eq!((full.is_some(), log.is_waiting(), how), (true, true, How::Full), "at {at}");
                log.append_durably([&begun(1)]).unwrap();
                waited += 1;
            }
            let found = Log::open(disk, PATH).unwrap();
            let sent: &[u64] = if may_wait(how, at) { &[0, 1] } else { &[0] };
            assert_eq!(intents(&found), sent, "{how:?} at {at}");
        }
    }
    assert_eq!(waited, 3, "creation, write and note");
}

/// True for the steps after which the file found is certainly the durable one: all before its successor's rename, but for
/// the sync.
fn may_wait(how: How, at: u64) -> bool {
    how == How::Full && [0, 1, 3].contains(&at)
}

/// The next process would read the file that is there then, or none.
#[test]
fn a_log_that_waits_replaces_no_file_but_the_one_that_it_has_read() {
    let aside = Path::new("/j/aside");
    for put_back in [false, true] {
        let disk = earlier();
        let before = disk.bytes(Path::new(PATH));
        disk.set_fault(How::Full, 0, true);
        let (mut log, _) = Log::open_even_if_full(disk.clone(), PATH).unwrap();
        disk.set_fault(How::Full, NEVER, false);
        disk.rename(Path::new(PATH), aside).unwrap();
        assert!(matches!(log.append_durably([&begun(1)]), Err(JournalError::Displaced { .. })));
        assert!(!log.is_waiting());
        assert_eq!(disk.bytes(Path::new(PATH)), None);
        drop(log);
        if put_back {
            disk.rename(aside, Path::new(PATH)).unwrap();
            assert_eq!(disk.bytes(Path::new(PATH)), before);
            assert_eq!(intents(&Log::open(disk, PATH).unwrap()), [0]);
        } else {
            assert!(matches!(Log::open(disk, PATH), Err(JournalError::Lost { .. })));
        }
    }
}

#[test]
fn a_log_that_is_not_there_yet_needs_room() {
    for at in 0..2 {
        let disk = SimDisk::with_fault(Fault { at, how: How::Full, lasts: true });
        assert!(Log::open_even_if_full(disk.clone(), PATH).is_err());
        assert_eq!(disk.bytes(Path::new(PATH)), None);
    }
}

#[test]
fn a_log_that_was_found_waits_with_no_more_than_a_few_mebibytes() {
    let disk = earlier();
    disk.set_fault(How::Full, 0, true);
    let (mut log, _) = Log::open_even_if_full(disk.clone(), PATH).unwrap();
    let long = seen(&"x".repeat(1_000_000));
    for waits in [true, true, true, true, false] {
        log.append([&long]).unwrap_err();
        assert_eq!(log.is_waiting(), waits);
    }
}
