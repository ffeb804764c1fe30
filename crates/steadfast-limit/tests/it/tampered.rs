//! Altered journals: the quota is never exceeded, and nothing panics.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use steadfast_call::{BootClock, WallClock, file::NotOwn};
use steadfast_limit::{
    Account, Answer, ColdStart, Event, InvalidLimiter, Lane, ScopeKeys, Zone, ZoneLimiter,
};
use tempfile::TempDir;
use tokio::time::{Instant, advance};

use crate::drive::general;

const GENERAL: Zone = Zone::GENERAL;

fn start(path: &Path, clock: &WallClock) -> Result<ZoneLimiter, InvalidLimiter> {
    let builder = ZoneLimiter::builder().zone(general()).wall_clock(clock.clone());
    let builder = builder.boot_clock(BootClock::new(|| None));
    builder.cold_start(ColdStart::Journal(path.to_owned())).build()
}

fn keys(limiter: &ZoneLimiter) -> ScopeKeys {
    limiter.keys("example.com", &Account::new("one"))
}

/// Returns when an order could leave.
fn opens(limiter: &ZoneLimiter) -> Instant {
    limiter.earliest(&[GENERAL], keys(limiter), Lane::Trading).unwrap()
}

/// Writes a journal of nine requests just sent. Returns it, and when the gateway would admit an order.
async fn written(path: &Path, clock: &WallClock) -> (Vec<u8>, Instant) {
    let limiter = start(path, clock).unwrap();
    for _ in 0..9 {
        let mut permit = limiter.acquire(&[GENERAL], keys(&limiter), Lane::Trading).await.unwrap();
        permit.sent();
        permit.settle(Answer::Accepted);
    }
    let opens = opens(&limiter);
    drop(limiter);
    (fs::read(path).unwrap(), opens)
}

struct Place {
    _folder: TempDir,
    path: PathBuf,
    clock: WallClock,
}

fn place() -> Place {
    let folder = TempDir::new().unwrap();
    let (path, start) = (folder.path().join("limits"), Instant::now());
    let clock = WallClock::new(move || UNIX_EPOCH + Duration::from_secs(1_790_000_000) + start.elapsed());
    Place { _folder: folder, path, clock }
}

#[tokio::test(start_paused = true)]
async fn no_changed_byte_and_no_cut_lets_an_order_out_early() {
    let Place { _folder, path, clock } = place();
    let (whole, true_opening) = written(&path, &clock).await;
    let changed = (0..whole.len()).flat_map(|at| {
        [0x01, 0x20, 0x80].map(|bit| {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            bytes
        })
    });
    let cut = (0..whole.len()).map(|end| whole[..end].to_vec());
    let twice = [[&whole[..], &whole[..]].concat()];
    let newer = [String::from_utf8(whole.clone()).unwrap().replace("steadfast-limit 2", "steadfast-limit 3")];
    let others = newer.into_iter().map(String::into_bytes).chain(twice);
    for bytes in changed.chain(cut).chain(others) {
        fs::write(&path, &bytes).unwrap();
        let limiter = start(&path, &clock).unwrap();
        assert!(opens(&limiter) >= true_opening, "{:?}", String::from_utf8_lossy(&bytes));
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_told_that_the_journal_was_damaged() {
    let Place { _folder, path, clock } = place();
    written(&path, &clock).await;
    fs::write(&path, b"nonsense").unwrap();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let builder = ZoneLimiter::builder().zone(general()).wall_clock(clock);
    let builder = builder.on_event(move |event| seen.lock().unwrap().push(event.clone()));
    let _limiter = builder.cold_start(ColdStart::Journal(path)).build().unwrap();
    assert_eq!(*events.lock().unwrap(), [Event::JournalDamaged]);
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_journal_behind_a_link_is_refused_and_left_alone() {
    use std::os::unix::fs::symlink;

    let Place { _folder, path, clock } = place();
    let (whole, _) = written(&path, &clock).await;
    let elsewhere = path.with_file_name("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let refused = start(&path, &clock).err();
    let named = path.clone();
    assert_eq!(refused, Some(InvalidLimiter::JournalNotOwn { path: named, why: NotOwn::NotPlain }));
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read(&elsewhere).unwrap(), whole);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_file_is_no_journal_and_is_left_alone() {
    let Place { _folder, path, clock } = place();
    fs::create_dir(&path).unwrap();
    advance(Duration::from_secs(1)).await;
    let InvalidLimiter::JournalNotOwn { path: named, why } = start(&path, &clock).unwrap_err() else {
        panic!("by its name")
    };
    assert_eq!((named, why), (path.clone(), NotOwn::NotPlain));
    assert!(path.is_dir());
}

/// An unreadable path does not prove that there is no journal: the previous process's windows may still be spent.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_looked_at_is_not_taken_for_none() {
    let Place { _folder, path, clock } = place();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let InvalidLimiter::JournalNotOwn { path: named, why } = start(&path, &clock).unwrap_err() else {
        panic!("by its name")
    };
    assert_eq!((named, why), (path, NotOwn::NotPlain));
}
