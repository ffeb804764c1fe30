//! Journals that something has happened to: never more than the quota, never a panic.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};

use steadfast_limit::{
    Account, Answer, ColdStart, Event, InvalidLimiter, Lane, ScopeKeys, Zone, ZoneLimiter,
};
use steadfast_spec::WallClock;
use tempfile::TempDir;
use tokio::time::{Instant, advance};

use crate::drive::general;

const GENERAL: Zone = Zone::GENERAL;

fn start(path: &Path, clock: &WallClock) -> Result<ZoneLimiter, InvalidLimiter> {
    let builder = ZoneLimiter::builder().zone(general()).wall_clock(clock.clone());
    builder.cold_start(ColdStart::Journal(path.to_owned())).build()
}

fn keys(limiter: &ZoneLimiter) -> ScopeKeys {
    limiter.keys("example.com", &Account::new("one"))
}

/// When an order could leave.
fn opens(limiter: &ZoneLimiter) -> Instant {
    limiter.earliest(&[GENERAL], keys(limiter), Lane::Trading).unwrap()
}

/// A journal of nine requests just sent, and when an order could leave at the gateway.
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
    let newer = [String::from_utf8(whole.clone()).unwrap().replace("steadfast-limit 1", "steadfast-limit 2")];
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
async fn the_journal_is_this_users_alone_whoever_could_read_it_before() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let Place { _folder, path, clock } = place();
    let (whole, true_opening) = written(&path, &clock).await;
    // Behind a link, and for everybody to read.
    let elsewhere = path.with_file_name("elsewhere");
    fs::write(&elsewhere, &whole).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let limiter = start(&path, &clock).unwrap();
    assert_eq!(opens(&limiter), true_opening, "it is read all the same");
    let left = fs::symlink_metadata(&path).unwrap();
    assert!(left.is_file(), "the link is replaced, and what it named is left alone");
    assert_eq!(left.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&elsewhere).unwrap(), whole);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_file_is_no_journal_and_is_left_alone() {
    let Place { _folder, path, clock } = place();
    fs::create_dir(&path).unwrap();
    advance(Duration::from_secs(1)).await;
    let InvalidLimiter::Journal { path: named, kind } = start(&path, &clock).unwrap_err() else {
        panic!("by its name")
    };
    assert_eq!((named, kind), (path.clone(), io::ErrorKind::InvalidInput));
    assert!(path.is_dir());
}

/// Whoever cannot look does not know that there is none: the windows of the process before might still be spent.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_looked_at_is_not_taken_for_none() {
    let Place { _folder, path, clock } = place();
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let InvalidLimiter::Journal { path: named, kind } = start(&path, &clock).unwrap_err() else {
        panic!("by its name")
    };
    assert_eq!(named, path);
    assert_ne!(kind, io::ErrorKind::NotFound);
}
