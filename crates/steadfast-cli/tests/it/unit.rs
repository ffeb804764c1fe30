//! The unit of systemd in `packaging/`.

use std::fs;

use tokio::process::Command;

use crate::{command::output, files::said};

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/steadfast-proxy@.service");

#[tokio::test]
async fn the_unit_starts_a_proxy_as_it_is_and_gives_it_time_to_end() {
    let unit = fs::read_to_string(UNIT).unwrap();
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {key}")).to_owned()
    };
    // The command line is valid but for the file, which names the service.
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("alice.toml");
    fs::write(&config, "base-url = \"http://127.0.0.1:1/v2\"\n").unwrap();
    let start = value("ExecStart").replace("/etc/steadfast/%i.toml", config.to_str().unwrap());
    let words: Vec<&str> = start.split_whitespace().skip(1).chain(["--print-config"]).collect();
    let shown = output(&words).await;
    assert!(shown.status.success(), "{}", said(&shown).1);
    let drain: u64 = said(&shown)
        .0
        .lines()
        .find_map(|line| line.strip_prefix("drain = ")?.split(' ').next()?.parse().ok())
        .unwrap();
    assert!(value("TimeoutStopSec").parse::<u64>().unwrap() > drain + 71);
    // A start that needs a person does not begin again by itself.
    assert_eq!(value("RestartPreventExitStatus"), "2 3 4");
}

/// `systemd-analyze`, where it is there.
#[tokio::test]
async fn systemd_finds_no_fault_in_the_unit_and_calls_it_hardened() {
    let there = Command::new("systemd-analyze").arg("--version").output().await;
    if !there.is_ok_and(|there| there.status.success()) {
        eprintln!("not run: systemd-analyze is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("steadfast-proxy@.service");
    // Its program is the one that was built with this test.
    let text =
        fs::read_to_string(UNIT).unwrap().replace("/usr/bin/steadfast", env!("CARGO_BIN_EXE_steadfast"));
    fs::write(&unit, text.replace("Documentation=man:steadfast-proxy(1)\n", "")).unwrap();
    let check = async |args: &[&str]| {
        let path = unit.with_file_name("steadfast-proxy@alice.service");
        fs::copy(&unit, &path).unwrap();
        let checked = Command::new("systemd-analyze").args(args).arg(&path).output().await.unwrap();
        (checked.status.success(), format!("{:?}", said(&checked)))
    };
    let (fine, told) = check(&["verify", "--recursive-errors=no"]).await;
    assert!(fine, "{told}");
    assert!(!told.contains("Unknown") && !told.contains("ignoring"), "{told}");
    // 0 is the least exposure, 100 the greatest.
    let (fine, told) = check(&["security", "--offline=true", "--threshold=20", "--no-pager"]).await;
    assert!(fine, "{told}");
}
