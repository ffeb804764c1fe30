//! Tests the journal on the real file system.

use std::fs;

use steadfast_dedup::{
    IntentNo, Reason, Verdict,
    journal::{FileJournal, Journal, JournalError, Record},
    unresolved,
};

use crate::{acknowledged, begun, entry, intent_of, lost, seen};

#[tokio::test]
async fn what_one_process_wrote_the_next_one_finds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let journal = FileJournal::open(&path).unwrap();
    let salt = journal.salt();
    journal.append(seen("a"));
    journal.append_durably(begun(0)).await.unwrap();
    journal.append(acknowledged(0));
    let (one, other) = tokio::join!(journal.append_durably(begun(1)), journal.append_durably(begun(2)));
    one.and(other).unwrap();
    assert_eq!(FileJournal::read(&path).unwrap().unwrap().len(), 5, "read beside it");
    journal.append(seen("b"));
    drop(journal);
    let journal = FileJournal::open(&path).unwrap();
    let found = journal.recover();
    assert_eq!(found.iter().filter_map(intent_of).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(found.len(), 6, "dropping it waited for what was added last");
    assert!(journal.recover().is_empty(), "asked for once");
    assert_eq!(journal.salt(), salt, "sessions keep their names");
}

#[test]
fn what_a_journal_knows_no_end_of_is_told_without_opening_it() {
    let intent = IntentNo(1);
    let given_up = |reason: Reason| {
        entry(Record::Unresolved { intent, reason: reason.as_str().into(), candidates: vec!["o9".into()] })
    };
    let entries =
        [begun(0), begun(1), begun(2), begun(3), acknowledged(0), lost(1), given_up(Reason::Budget)];
    let found = entry(Record::Found { intent: IntentNo(3), order_id: "o3".into(), status: None });
    let open = unresolved(&[&entries[..], &[found]].concat());
    let told: Vec<_> = open.iter().map(|order| (order.intent.0, &order.verdict)).collect();
    let [(1, Verdict::Unresolved(given_up)), (2, Verdict::Pending)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((given_up.reason, &*given_up.candidates), (Reason::Budget, &["o9".to_owned()][..]));
}

/// Regression: a program that only read a journal accepted one that was cut or put back.
#[tokio::test]
async fn o07_a_check_without_opening_finds_what_opening_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    FileJournal::check(&path).unwrap();
    let journal = FileJournal::open(&path).unwrap();
    journal.append_durably(begun(0)).await.unwrap();
    let older = fs::read(&path).unwrap();
    journal.append_durably(begun(1)).await.unwrap();
    // A journal in use is whole.
    FileJournal::check(&path).unwrap();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, older).unwrap();
    assert!(matches!(FileJournal::check(&path), Err(JournalError::Outdated { .. })));
    assert_eq!(FileJournal::read(&path).unwrap().unwrap().len(), 1, "what is there can be read");
    fs::write(&path, whole).unwrap();
    FileJournal::check(&path).unwrap();
    #[cfg(unix)]
    {
        let link = folder.path().join("other");
        fs::hard_link(&path, &link).unwrap();
        assert!(matches!(FileJournal::check(&path), Err(JournalError::Linked { .. })));
        fs::remove_file(&link).unwrap();
    }
    fs::remove_file(&path).unwrap();
    assert!(matches!(FileJournal::check(&path), Err(JournalError::Lost { .. })));
}

#[test]
fn each_journal_has_a_salt_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let salt = |name| FileJournal::open(folder.path().join(name)).unwrap().salt();
    assert_ne!(salt("one"), salt("other"));
}

#[test]
fn a_second_one_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    let journal = FileJournal::open(&path).unwrap();
    let error = FileJournal::open(&path).unwrap_err();
    assert!(matches!(&error, JournalError::InUse { .. }) && error.to_string().ends_with("is in use"));
    drop(journal);
    FileJournal::open(&path).unwrap();
}

#[cfg(unix)]
#[test]
fn it_is_for_its_owner_alone_and_never_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    drop(FileJournal::open(&path).unwrap());
    for file in fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
    let refused = |path: &std::path::Path| {
        let error = FileJournal::open(path).unwrap_err();
        let JournalError::Io { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
    };
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    refused(&link);
    refused(folder.path());
    for mode in [0o640, 0o604, 0o660] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        refused(&path);
    }
}

#[test]
fn what_is_no_journal_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.journal");
    drop(FileJournal::open(&path).unwrap());
    let mut later = fs::read(&path).unwrap();
    for bytes in [Vec::new(), b"symId,qty\n".repeat(20), later[..20].to_vec()] {
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(FileJournal::open(&path), Err(JournalError::NotAJournal { .. })));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    // The version is after eight bytes of magic; its checksum is after that.
    later[8] += 1;
    let sum = {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&later[..12]);
        sum.update(&later[16..48]);
        sum.finalize()
    };
    later[12..16].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, &later).unwrap();
    assert!(matches!(FileJournal::open(&path), Err(JournalError::Version { found: 2, .. })));
    assert_eq!(fs::read(&path).unwrap(), later);
}
