use std::{io, sync::Weak, time::Duration};

use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};

use crate::{
    core::{
        event::{Event, NextStart},
        start::Start,
    },
    shell::zone_limiter::{Shared, ZoneLimiter},
};

/// The pause between two records while requests are sent.
const PACE: Duration = Duration::from_millis(200);

impl ZoneLimiter {
    /// Records that something was spent or came back and must be written soon.
    ///
    /// The first change starts a task, which ends when nothing is left to write. Outside of a runtime the change is
    /// written at the next change inside of one, or at the end of the limiter.
    pub(crate) fn touched(&self) {
        let Some(journal) = self.journal() else { return };
        if !journal.pending().change() {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(keep(Kept(self.downgrade()), Instant::now()))),
            Err(_) => journal.pending().writer_ended(),
        }
    }

    /// Writes one record; no request waits for it. If it fails, the old record is marked, so that the next process
    /// does not take it for the whole truth.
    fn write(&self) -> Result<(), (io::Error, NextStart)> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let record = journal.record(self.entries(), false);
        journal.write(&record).map_err(|error| (error, journal.spoil()))
    }
}

/// Writes records until nothing has changed since the last one.
///
/// The next process relies on this: a grant is on record within a second. So the record misses at most what the
/// tightest window admits in a second, however the process ends.
async fn keep(kept: Kept, mut since: Instant) {
    let mut failing = false;
    while let Some(limiter) = kept.0.upgrade().map(ZoneLimiter::of) {
        let Some(journal) = limiter.journal() else { return };
        if !journal.pending().take() {
            return;
        }
        let began = Instant::now();
        let writer = limiter.clone();
        let written = spawn_blocking(move || writer.write())
            .await
            .unwrap_or_else(|_| Err((io::ErrorKind::Other.into(), NextStart::Unaware)));
        let late = since.elapsed().saturating_sub(Duration::from_nanos(Start::RECORDED_WITHIN));
        match written {
            Ok(()) => {
                if !late.is_zero() {
                    limiter.report(&Event::JournalLate { by: late });
                }
                (since, failing) = (began, false);
            }
            Err((error, next)) => {
                journal.pending().put_back();
                if !std::mem::replace(&mut failing, true) {
                    limiter.report(&Event::JournalFailed { kind: error.kind(), next });
                }
            }
        }
        drop(limiter);
        tokio::time::sleep(PACE).await;
    }
}

/// Tells the limiter that the task has ended, also if its runtime ended.
struct Kept(Weak<Shared>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(limiter) = self.0.upgrade().map(ZoneLimiter::of)
            && let Some(journal) = limiter.journal()
        {
            journal.pending().writer_ended();
        }
    }
}
