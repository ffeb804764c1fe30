//! Tests every image that a crash can leave of a journal, and every flipped bit.
//!
//! For each image: a send that was reported durable is recovered, or opening fails and reports where; nothing is
//! recovered that was not written; a send after lost lists has no session; recovering twice equals recovering once.
//! An image is never taken for an older copy, with any of the notes that may be left in the lock.

use std::{collections::BTreeSet, path::Path};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use steadfast_call::Outcome;
use steadfast_dedup::{
    Session,
    journal::{Entry, JournalError, Log, Record},
};

use crate::{
    acknowledged, begun, closed, deep,
    disk::{Fault, How, SimDisk, Torn},
    intent_of, lost, seen,
};

const PATH: &str = "/j/orders.journal";

/// One call of the log.
#[derive(Clone, Debug)]
enum Step {
    Lazy(Vec<Entry>),
    Durable(Vec<Entry>),
    /// The process ends and the next one continues.
    Reopen,
}

fn short_script() -> Vec<Step> {
    vec![
        Step::Lazy(vec![seen("a")]),
        Step::Durable(vec![begun(0)]),
        Step::Lazy(vec![seen("b"), acknowledged(0)]),
        Step::Durable(vec![begun(1), begun(2)]),
        Step::Lazy(vec![closed(1, Outcome::NotSent)]),
        Step::Lazy(vec![lost(2)]),
        Step::Reopen,
        Step::Durable(vec![begun(3)]),
        Step::Lazy(vec![seen("c")]),
    ]
}

/// Ends with a send that no later record marks as durable.
fn tail_script() -> Vec<Step> {
    vec![
        Step::Durable(vec![begun(0)]),
        Step::Lazy(vec![seen("a"), acknowledged(0)]),
        Step::Durable(vec![seen("b"), begun(1)]),
    ]
}

fn random_script(rng: &mut ChaCha8Rng) -> Vec<Step> {
    let mut next = 0;
    let mut entry = |rng: &mut ChaCha8Rng| {
        let old = u64::from(rng.next_u32()) % (next + 1);
        match rng.next_u32() % 6 {
            0 => seen(&format!("id{}", rng.next_u32() % 8)),
            1 => acknowledged(old),
            2 => lost(old),
            3 => closed(old, Outcome::Rejected),
            _ => {
                next += 1;
                begun(next)
            }
        }
    };
    (0..3 + rng.next_u32() % 5)
        .map(|_| {
            let count = 1 + rng.next_u32() % 3;
            let entries = (0..count).map(|_| entry(rng)).collect();
            match rng.next_u32() % 5 {
                0 | 1 => Step::Lazy(entries),
                2 | 3 => Step::Durable(entries),
                _ => Step::Reopen,
            }
        })
        .collect()
}

/// The entries that a run has written, and the reports that it got.
#[derive(Clone, Debug, Default)]
struct Written {
    entries: Vec<Entry>,
    durable: BTreeSet<u64>,
    /// Intents that may be forgotten.
    void: BTreeSet<u64>,
}

fn run(disk: &SimDisk, script: &[Step]) -> Written {
    let mut written = Written::default();
    let open = || Log::open(disk.clone(), PATH).ok();
    let Some(mut log) = open() else { return written };
    for step in script {
        let entries = match step {
            Step::Lazy(entries) | Step::Durable(entries) => entries,
            Step::Reopen => {
                drop(log);
                let Some(next) = open() else { return written };
                log = next;
                continue;
            }
        };
        for entry in entries {
            if let Record::Closed { attempt, outcome, .. } = &entry.record
                && outcome.is_not_executed()
            {
                written.void.insert(attempt.intent.0);
            }
        }
        written.entries.extend(entries.iter().cloned());
        let told = match step {
            Step::Durable(_) => log.append_durably(entries),
            _ => log.append(entries),
        };
        match (told, step) {
            (Ok(()), Step::Durable(entries)) => written.durable.extend(entries.iter().filter_map(intent_of)),
            (Ok(()), _) => {}
            (Err(_), _) => return written,
        }
    }
    written
}

/// Returns the entry as it is found behind a gap.
fn without_session(mut entry: Entry) -> Entry {
    if let Record::Begun { session, .. } = &mut entry.record {
        *session = Session::default();
    }
    entry
}

fn check(found: &[Entry], written: &Written, what: &dyn Fn() -> String) {
    let intents: BTreeSet<u64> = found.iter().filter_map(intent_of).collect();
    for intent in written.durable.difference(&written.void) {
        assert!(intents.contains(intent), "{}: send {intent} was durable and is lost", what());
    }
    let mut rest = written.entries.iter();
    for entry in found {
        let same = |other: &&Entry| *other == entry || without_session((*other).clone()) == *entry;
        assert!(rest.any(|other| same(&other)), "{}: {entry:?} was not written, or not there", what());
    }
    for (at, entry) in written.entries.iter().enumerate() {
        let knows = matches!(&entry.record, Record::Begun { session, .. } if *session != Session::default());
        if knows && found.contains(entry) {
            let before = written.entries[..at].iter().filter(|e| matches!(e.record, Record::Seen { .. }));
            for list in before {
                assert!(found.contains(list), "{}: {entry:?} without {list:?}", what());
            }
        }
    }
}

fn read(bytes: Vec<u8>) -> Result<Vec<Entry>, JournalError> {
    let path = Path::new(PATH);
    Ok(Log::read(&SimDisk::holding(path, bytes), path)?.unwrap_or_default())
}

/// Recovers with each of the notes, crashes at each operation of that, and recovers again, to this depth.
fn recover(
    bytes: &[u8],
    notes: &[Vec<u8>],
    written: &Written,
    depth: u32,
    images: &mut u64,
    what: &dyn Fn() -> String,
) {
    for (which, note) in notes.iter().enumerate() {
        recover_with(bytes, note, written, depth, images, &|| format!("{}, note {which}", what()));
    }
}

fn recover_with(
    bytes: &[u8],
    note: &[u8],
    written: &Written,
    depth: u32,
    images: &mut u64,
    what: &dyn Fn() -> String,
) {
    let path = Path::new(PATH);
    let holding = || SimDisk::with_note(path, bytes.to_vec(), note.to_vec());
    let disk = holding();
    let first = Log::open(disk.clone(), PATH).map(|log| log.entries().cloned().collect::<Vec<_>>());
    let first = first.unwrap_or_else(|error| panic!("{}: {error}", what()));
    check(&first, written, what);
    assert_eq!(read(disk.bytes(path).unwrap()).unwrap(), first, "{}: recovered twice", what());
    if depth == 0 {
        return;
    }
    for at in 0..disk.operations() {
        let disk = holding();
        disk.set_fault(How::Crash, at, false);
        assert!(Log::open(disk.clone(), PATH).is_err());
        let mut left = Vec::new();
        disk.images(path, |image| left.extend(image.cloned()));
        for image in left {
            let whole = image.torn(u32::MAX, usize::MAX, 0, Torn::Absent, 0);
            *images += 1;
            recover(&whole, &disk.notes(), written, depth - 1, images, &|| format!("{}, then {at}", what()));
        }
    }
}

/// Crashes a script at each of its operations; returns the number of images tried.
fn crash_everywhere(script: &[Step], thoroughly: bool) -> u64 {
    let whole = SimDisk::default();
    run(&whole, script);
    let mut images = 0;
    for at in 0..=whole.operations() {
        let disk = SimDisk::with_fault(Fault { at, how: How::Crash, lasts: false });
        let written = run(&disk, script);
        let mut left = Vec::new();
        disk.images(Path::new(PATH), |image| left.extend(image.cloned()));
        let notes = disk.notes();
        for image in left {
            let count = image.writes.len();
            // Which writes are there beside the torn one: all, none, or any.
            let selections: u32 = if thoroughly { 1 << count.min(4) } else { 2 };
            for selection in 0..selections {
                let kept = if thoroughly { selection } else { selection.wrapping_neg() };
                for write in 0..count {
                    for cut in 0..=image.writes[write].len() {
                        for torn in [Torn::Absent, Torn::Zero, Torn::Garbage] {
                            let bytes = image.torn(kept, write, cut, torn, at as u8);
                            let what =
                                || format!("crash at {at}, write {write} cut at {cut} {torn:?}, {kept:b}");
                            let found = read(bytes.clone());
                            let found = found.unwrap_or_else(|error| panic!("{}: {error}", what()));
                            check(&found, &written, &what);
                            images += 1;
                            if images % 509 == 0 {
                                let depth = if thoroughly { 2 } else { 1 };
                                recover(&bytes, &notes, &written, depth, &mut images, &what);
                            }
                        }
                    }
                }
            }
            let bytes = image.torn(u32::MAX, usize::MAX, 0, Torn::Absent, 0);
            recover(&bytes, &notes, &written, 2, &mut images, &|| format!("crash at {at}"));
            images += 1;
        }
    }
    images
}

/// Returns the least number of images; a campaign sets more with `STEADFAST_CRASH_IMAGES`.
fn wanted() -> u64 {
    let campaign = std::env::var("STEADFAST_CRASH_IMAGES").ok().map(|images| images.parse().unwrap());
    campaign.unwrap_or(if deep() { 1_000_000 } else { 0 })
}

#[test]
fn no_crash_loses_a_durable_send_or_invents_one() {
    let mut images = crash_everywhere(&short_script(), deep());
    let mut seed = 0;
    while images < wanted() {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        images += crash_everywhere(&random_script(&mut rng), true);
        seed += 1;
    }
    println!("figures: crash_images={images} random_scripts={seed}");
    assert!(images > 5_000, "{images} images");
}

#[test]
fn no_flipped_bit_loses_a_durable_send_silently() {
    let mut flips = (0_u64, 0_u64);
    let count = if deep() { 20 } else { 2 };
    for seed in 0..count {
        let script = match seed {
            0 => tail_script(),
            1 => short_script(),
            _ => random_script(&mut ChaCha8Rng::seed_from_u64(seed)),
        };
        let disk = SimDisk::default();
        let written = run(&disk, &script);
        let good = disk.bytes(Path::new(PATH)).unwrap();
        check(&read(good.clone()).unwrap(), &written, &|| "whole".into());
        // Every bit of the longer ones would take too long.
        let step = if deep() || seed == 0 { 1 } else { 3 };
        for bit in (0..good.len() * 8).step_by(step) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            flips.0 += 1;
            match read(bad.clone()) {
                Ok(found) => check(&found, &written, &|| format!("script {seed}, bit {bit}")),
                Err(error) => {
                    flips.1 += 1;
                    let told = matches!(error, JournalError::NotAJournal { .. })
                        || matches!(error, JournalError::Damaged { offset, .. } if offset <= bit as u64 / 8);
                    assert!(told, "script {seed}, bit {bit}: {error:?}");
                    // It is left as it is, for a tool that can read more of it.
                    let disk = SimDisk::holding(Path::new(PATH), bad.clone());
                    assert!(Log::open(disk.clone(), PATH).is_err());
                    assert_eq!(disk.bytes(Path::new(PATH)), Some(bad));
                }
            }
        }
    }
    println!("figures: flips={} flips_refused={}", flips.0, flips.1);
    assert!(flips.1 > 0, "damage before what is durable is noticed");
}
