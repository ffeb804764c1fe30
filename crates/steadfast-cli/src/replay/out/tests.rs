use super::*;

#[test]
fn c04_what_was_there_stays_until_the_results_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.csv");
    fs::write(&out, "yesterday").unwrap();
    let begun = OutFile::create(&out).unwrap();
    begun.writer().write_all(b"today").unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), "yesterday");
    assert!(begun.finish().is_ok());
    assert_eq!(fs::read_to_string(&out).unwrap(), "today");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// Regression: a run with the process number of a killed one was refused, since the file was there; and another one
/// never removed it.
#[test]
fn c04_what_a_killed_run_has_left_is_removed_once_the_results_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (out, header) = (folder.path().join("r.csv"), super::super::result::COLUMNS.join(",") + "\n");
    let beside = |name: &str| folder.path().join(name);
    let own = format!("r.csv.{}.part", std::process::id());
    for left in [&own, "r.csv.4000000.part", "r.csv.4000001.part", "r.csv.notes.part", "s.csv.1.part"] {
        fs::write(beside(left), &header).unwrap();
    }
    fs::write(beside("r.csv.5.part"), "of another program").unwrap();
    let in_use = File::open(beside("r.csv.4000001.part")).unwrap();
    in_use.lock().unwrap();
    let begun = OutFile::create(&out).unwrap();
    begun.writer().write_all(header.as_bytes()).unwrap();
    assert!(beside("r.csv.4000000.part").exists(), "the results are not whole yet");
    assert!(begun.finish().is_ok());
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|found| found.unwrap().file_name()).collect();
    names.sort();
    let kept = ["r.csv", "r.csv.4000001.part", "r.csv.5.part", "r.csv.notes.part", "s.csv.1.part"];
    assert_eq!(names, kept);
}

#[cfg(unix)]
#[test]
fn c04_a_link_and_a_device_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let out = OutFile::create(&link).unwrap();
    out.writer().write_all(b"new").unwrap();
    assert!(out.finish().is_ok());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    let null = Path::new("/dev/null");
    assert!(OutFile::create(null).unwrap().finish().is_ok());
    assert!(!fs::metadata(null).unwrap().is_file());
}

#[cfg(target_os = "linux")]
#[test]
fn c04_rows_that_a_full_device_does_not_take_are_kept() {
    let out = OutFile::create(Path::new("/dev/full")).unwrap();
    let mut rows = csv::Writer::from_writer(out.writer());
    rows.write_record(["line", "status"]).unwrap();
    assert!(rows.flush().is_err(), "it is told once");
    rows.write_record(["2", "placed"]).unwrap();
    rows.flush().unwrap();
    let unput = out.finish().err().unwrap();
    assert_eq!((&*unput.rows, unput.error.is_none()), (&b"line,status\n2,placed\n"[..], true));
}

#[test]
fn c04_no_file_of_the_run_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let orders = folder.path().join("orders.csv");
    fs::write(&orders, "").unwrap();
    let journal = folder.path().join("not-there-yet.journal");
    let own = [orders.clone(), journal.clone()];
    for taken in [orders.clone(), journal, folder.path().join(".").join("orders.csv")] {
        assert!(OutFile::check(&taken, &own).is_err(), "{}", taken.display());
    }
    assert!(OutFile::check(&folder.path().join("results.csv"), &own).is_ok());
    #[cfg(unix)]
    {
        let hard = folder.path().join("hard");
        fs::hard_link(&orders, &hard).unwrap();
        assert!(OutFile::check(&hard, &own).is_err());
    }
}

#[test]
fn c04_only_results_take_the_place_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.csv");
    for (text, may_go) in [
        ("line,status,orderId,resolution,msg\n2,placed,7,,ok\n", true),
        ("line,status,orderId,resolution,msg\r\n", true),
        ("line,status,orderId,resolution,msg", false),
        ("line,status,orderId,resolution,msg2\n", false),
        ("{\"version\":2,\"failures\":1}\n", false),
        ("", false),
    ] {
        fs::write(&out, text).unwrap();
        assert_eq!(OutFile::check(&out, &[]).is_ok(), may_go, "{text:?}");
    }
}
