//! Tests a journal or a lock that is no longer in its place, on the real file system.

use std::{
    fs,
    path::{Path, PathBuf},
};

use steadfast_dedup::journal::{FileJournal, FileSystem, Journal, JournalError, Log};

use crate::{begun, intent_of, seen};

/// Damage to the files of an open journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Moved,
    Removed,
    Emptied,
    ReplacedByAnother,
    /// By a copy that was made before the last order.
    PutBack,
    FolderMoved,
    LockMoved,
    LockRemoved,
    LockReplaced,
}

const HARMS: [Harm; 9] = [
    Harm::Moved,
    Harm::Removed,
    Harm::Emptied,
    Harm::ReplacedByAnother,
    Harm::PutBack,
    Harm::FolderMoved,
    Harm::LockMoved,
    Harm::LockRemoved,
    Harm::LockReplaced,
];

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn harm(how: Harm, path: &Path) {
    let (lock, aside) = (beside(path, ".lock"), beside(path, ".aside"));
    match how {
        Harm::Moved => fs::rename(path, aside).unwrap(),
        Harm::Removed => fs::remove_file(path).unwrap(),
        Harm::Emptied => fs::write(path, "").unwrap(),
        Harm::ReplacedByAnother => {
            drop(Log::open(FileSystem, &aside).unwrap());
            fs::rename(aside, path).unwrap();
        }
        Harm::PutBack => fs::rename(beside(path, ".copy"), path).unwrap(),
        Harm::FolderMoved => {
            let folder = path.parent().unwrap();
            fs::rename(folder, beside(folder, ".aside")).unwrap();
            fs::create_dir(folder).unwrap();
        }
        Harm::LockMoved => fs::rename(lock, aside).unwrap(),
        Harm::LockRemoved => fs::remove_file(lock).unwrap(),
        Harm::LockReplaced => {
            fs::rename(&lock, &aside).unwrap();
            fs::copy(aside, lock).unwrap();
        }
    }
}

/// Regression: a journal that was moved, removed or replaced was still written to, and orders left. The next process
/// knew nothing of them, and sent them again.
#[test]
fn o07_nothing_is_durable_in_a_journal_that_is_displaced() {
    for how in HARMS {
        for before in [0, 1, 5] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("state").join("orders.journal");
            fs::create_dir(path.parent().unwrap()).unwrap();
            let mut log = Log::open(FileSystem, &path).unwrap();
            fs::copy(&path, beside(&path, ".copy")).unwrap();
            for intent in 0..before {
                log.append_durably([&begun(intent)]).unwrap();
            }
            harm(how, &path);
            log.append([&seen("what may be lost is not looked after")]).unwrap();
            let error = log.append_durably([&begun(9)]).unwrap_err();
            let JournalError::Displaced { path: named } = &error else { panic!("{how:?}: {error:?}") };
            let is_lock = matches!(how, Harm::LockMoved | Harm::LockRemoved | Harm::LockReplaced);
            assert_eq!(*named, if is_lock { beside(&path, ".lock") } else { path.clone() }, "{how:?}");
            assert!(error.to_string().contains(named.to_str().unwrap()), "{error}");
            // Not even if it is put back: another process may have read the other file meanwhile.
            if how == Harm::Moved {
                fs::rename(beside(&path, ".aside"), &path).unwrap();
            }
            let again = log.append_durably([&begun(9)]).unwrap_err();
            assert_eq!(again.to_string(), error.to_string(), "{how:?}");
        }
    }
}

#[test]
fn o07_the_next_process_begins_no_journal_anew_in_place_of_a_lost_one() {
    for how in HARMS {
        for noticed in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("state").join("orders.journal");
            fs::create_dir(path.parent().unwrap()).unwrap();
            let mut log = Log::open(FileSystem, &path).unwrap();
            log.append_durably([&begun(0)]).unwrap();
            fs::copy(&path, beside(&path, ".copy")).unwrap();
            log.append_durably([&begun(1)]).unwrap();
            harm(how, &path);
            if noticed {
                log.append_durably([&begun(9)]).unwrap_err();
            }
            drop(log);
            let next = Log::open(FileSystem, &path);
            match how {
                // The journal is in its place: nothing of it is lost.
                Harm::LockMoved | Harm::LockRemoved | Harm::LockReplaced => {
                    let found: Vec<_> = next.unwrap().entries().filter_map(intent_of).collect();
                    assert_eq!(found[..2], [0, 1], "{how:?}");
                }
                // This cannot be noticed: everything is gone.
                Harm::FolderMoved => drop(next.unwrap()),
                Harm::PutBack if !noticed => {
                    assert!(matches!(next, Err(JournalError::Outdated { .. })), "{next:?}");
                }
                Harm::Emptied if !noticed => {
                    assert!(matches!(next, Err(JournalError::NotAJournal { .. })));
                }
                _ => {
                    let told = next.unwrap_err().to_string();
                    assert!(told.contains(path.to_str().unwrap()), "{how:?}: {told}");
                }
            }
        }
    }
}

/// Regression: a journal that was moved away and back was refused until its lock was emptied.
#[test]
fn o07_a_displaced_journal_that_is_back_is_gone_on_with_and_a_copy_of_it_is_not() {
    for (how, is_folder) in [(Harm::Moved, false), (Harm::Removed, false), (Harm::FolderMoved, true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state").join("orders.journal");
        let state = path.parent().unwrap();
        fs::create_dir(state).unwrap();
        let mut log = Log::open(FileSystem, &path).unwrap();
        log.append_durably([&begun(0)]).unwrap();
        fs::copy(&path, beside(&path, ".copy")).unwrap();
        log.append_durably([&begun(1)]).unwrap();
        harm(how, &path);
        log.append_durably([&begun(2)]).unwrap_err();
        drop(log);
        if is_folder {
            fs::remove_dir(state).unwrap();
            fs::rename(beside(state, ".aside"), state).unwrap();
        } else {
            assert!(matches!(Log::open(FileSystem, &path), Err(JournalError::Lost { .. })));
            // It lacks an order that was sent.
            fs::copy(beside(&path, ".copy"), &path).unwrap();
            let error = Log::open(FileSystem, &path).unwrap_err();
            assert!(matches!(error, JournalError::Outdated { .. }), "{how:?}: {error}");
            if how == Harm::Removed {
                continue;
            }
            fs::rename(beside(&path, ".aside"), &path).unwrap();
        }
        FileJournal::check(&path).unwrap();
        let log = Log::open(FileSystem, &path).unwrap();
        let found: Vec<_> = log.entries().filter_map(intent_of).collect();
        // The last one was refused, and is searched for all the same.
        assert_eq!(found, [0, 1, 2], "{how:?}");
        drop(log);
        drop(Log::open(FileSystem, &path).unwrap());
    }
}

/// Regression: a journal that was cut after a record while no process ran was accepted: its last orders were placed
/// again.
#[test]
fn o07_a_journal_that_was_cut_or_put_back_is_refused() {
    for restarts in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut states) = (folder.path().join("orders.journal"), Vec::new());
        for life in 0..=restarts {
            let mut log = Log::open(FileSystem, &path).unwrap();
            for intent in 0..3 {
                states.push(fs::read(&path).unwrap());
                log.append_durably([&begun(10 * life + intent)]).unwrap();
            }
        }
        let (whole, note) = (fs::read(&path).unwrap(), fs::read(beside(&path, ".lock")).unwrap());
        for older in states {
            fs::write(&path, &older).unwrap();
            let error = Log::open(FileSystem, &path).unwrap_err();
            let JournalError::Outdated { path: named, lock, length, written } = &error else {
                panic!("{error:?}")
            };
            assert_eq!((named, lock), (&path, &beside(&path, ".lock")));
            assert_eq!((*length, *written), (older.len() as u64, whole.len() as u64));
            let told = error.to_string();
            for part in [path.display().to_string(), lock.display().to_string(), length.to_string()] {
                assert!(told.contains(&part), "{told}");
            }
            assert!(told.contains(&format!("{written} were written")), "{told}");
            assert_eq!(fs::read(&path).unwrap(), older, "left as it is");
            assert_eq!(fs::read(lock).unwrap(), note, "still known");
        }
        // Put back, it is accepted; an older one is, too, once the lock is removed.
        fs::write(&path, &whole).unwrap();
        drop(Log::open(FileSystem, &path).unwrap());
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(Log::open(FileSystem, &path).is_err());
        fs::remove_file(beside(&path, ".lock")).unwrap();
        let found = Log::open(FileSystem, &path).unwrap().entries().count();
        assert_eq!(found, 3 * (restarts as usize + 1), "each is written twice");
    }
}

/// Answers may be lost, and so may the last note: a process killed in between left nothing wrong.
#[test]
fn o07_a_note_behind_the_journal_is_no_reason_to_refuse_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut notes) = (folder.path().join("orders.journal"), Vec::new());
    let mut log = Log::open(FileSystem, &path).unwrap();
    for intent in 0..3 {
        notes.push(fs::read(beside(&path, ".lock")).unwrap());
        log.append_durably([&begun(intent)]).unwrap();
    }
    log.append([&seen("an answer")]).unwrap();
    drop(log);
    let whole = fs::read(&path).unwrap();
    for cut in [0, 1] {
        for note in &notes {
            fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            fs::write(beside(&path, ".lock"), note).unwrap();
            let log = Log::open(FileSystem, &path).unwrap();
            assert_eq!(log.entries().filter_map(intent_of).collect::<Vec<_>>(), [0, 1, 2]);
        }
    }
}

/// A lock of version 0.1 knows the journal but not how far it was written.
#[test]
fn o07_a_lock_of_an_older_version_is_believed_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let mut log = Log::open(FileSystem, &path).unwrap();
    log.append_durably([&begun(0)]).unwrap();
    drop(log);
    let lock = beside(&path, ".lock");
    let mut older = fs::read(&lock).unwrap()[..25].to_vec();
    older.extend(crc32fast::hash(&older).to_le_bytes());
    let copy = fs::read(&path).unwrap();
    fs::write(&lock, older).unwrap();
    drop(Log::open(FileSystem, &path).unwrap());
    fs::write(&path, copy).unwrap();
    assert!(matches!(Log::open(FileSystem, &path), Err(JournalError::Outdated { .. })));
}

/// Regression: the lock goes by the name, so a second process used the same file under another name beside the first.
#[cfg(unix)]
#[test]
fn o07_a_journal_with_another_name_is_used_under_neither() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("orders.journal"), folder.path().join("other.journal"));
    let mut log = Log::open(FileSystem, &path).unwrap();
    log.append_durably([&begun(0)]).unwrap();
    fs::hard_link(&path, &other).unwrap();
    let is_linked = |error: &JournalError, at: &Path| {
        assert!(matches!(error, JournalError::Linked { path } if path == at), "{error:?}");
        assert!(error.to_string().contains(at.to_str().unwrap()), "{error}");
    };
    is_linked(&Log::open(FileSystem, &other).unwrap_err(), &other);
    is_linked(&log.append_durably([&begun(1)]).unwrap_err(), &path);
    is_linked(&log.append_durably([&begun(1)]).unwrap_err(), &path);
    drop(log);
    is_linked(&Log::open(FileSystem, &path).unwrap_err(), &path);
    assert!(Log::read(&FileSystem, &other).unwrap().is_some(), "reading is no use");
    fs::remove_file(other).unwrap();
    let log = Log::open(FileSystem, &path).unwrap();
    // The second one was refused, and is searched for all the same.
    assert_eq!(log.entries().filter_map(intent_of).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn o07_a_successor_does_not_take_the_place_of_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let mut log = Log::open(FileSystem, &path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    let long = seen(&"x".repeat(100_000));
    let failed = (0..20).find_map(|_| log.append([&long]).err());
    assert!(matches!(failed, Some(JournalError::Displaced { .. })), "{failed:?}");
    assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
}

#[tokio::test]
async fn o07_whoever_waits_for_the_disk_is_told_of_a_displaced_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let journal = FileJournal::open(&path).unwrap();
    journal.append_durably(begun(0)).await.unwrap();
    fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let error = journal.append_durably(begun(1)).await.unwrap_err();
        assert!(matches!(&error, JournalError::Displaced { path: named } if *named == path), "{error:?}");
    }
    assert!(!path.exists());
}

/// Regression: a journal or a lock of another owner was used if its mode was tight.
#[cfg(unix)]
#[test]
fn x03_a_journal_or_lock_of_another_owner_is_refused() {
    use std::os::unix::fs::{MetadataExt, chown, symlink};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    drop(Log::open(FileSystem, &path).unwrap());
    let refused = |path: &Path| {
        let error = Log::open(FileSystem, path).unwrap_err();
        let JournalError::Io { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied, "{error:?}");
    };
    // A link in place of the lock, by any owner.
    let linked = folder.path().join("linked.journal");
    symlink(beside(&path, ".lock"), beside(&linked, ".lock")).unwrap();
    refused(&linked);
    assert!(!linked.exists());
    // Only root can give files away; other users are tested in `steadfast_call::file`.
    if fs::metadata(&path).unwrap().uid() != 0 {
        return;
    }
    for other in [path.clone(), beside(&path, ".lock")] {
        chown(&other, Some(65_534), None).unwrap();
        refused(&path);
        chown(&other, Some(0), None).unwrap();
    }
    drop(Log::open(FileSystem, &path).unwrap());
}

/// Regression: orders went on leaving after the working folder had been moved, because the journal's path was relative to
/// it.
#[test]
fn o07_the_place_of_a_journal_does_not_follow_the_working_folder() {
    let folder = tempfile::tempdir().unwrap();
    let depth = std::env::current_dir().unwrap().components().count() - 1;
    let relative = format!("{}{}", "../".repeat(depth), &folder.path().to_str().unwrap()[1..]);
    let journal = FileJournal::open(Path::new(&relative).join("j")).unwrap();
    assert!(journal.path().is_some_and(Path::is_absolute), "{:?}", journal.path());
}
