use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use steadfast::dedup::Settings;

use super::{Seen, repeats::once_each};
use crate::readable::identifier;

/// Events that outlive the process: one JSON object a line, beside the journal.
pub(crate) struct Kept(PathBuf);

impl Kept {
    /// Returns the events file of a journal.
    pub(crate) fn beside(journal: &Path) -> Self {
        Self(with_ending(journal, ".events"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes one event, durable on return.
    pub(crate) fn keep(&self, seen: &Seen) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.0)?;
        let mut line = serde_json::to_vec(seen)?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_all()
    }

    /// Moves the stored events to the end of the file with the ending `.seen`, and returns them.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) while a run uses the journal, since it may be about to store another
    /// event.
    pub(crate) fn clear(&self, journal: &Path) -> io::Result<Vec<Seen>> {
        let _held = lock_of(journal)?;
        let events = self.read()?;
        if self.0.exists() {
            let text = std::fs::read(&self.0)?;
            let mut seen = OpenOptions::new();
            seen.create(true).append(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut seen, 0o600);
            let mut seen = seen.open(with_ending(&self.0, ".seen"))?;
            seen.write_all(&text)?;
            if !text.ends_with(b"\n") {
                seen.write_all(b"\n")?;
            }
            seen.sync_all()?;
            std::fs::remove_file(&self.0)?;
        }
        Ok(events)
    }

    /// Returns the events that were cleared on this trading day. On another day the same row and identifier may stand for
    /// another order. A line that cannot be read clears nothing.
    pub(crate) fn cleared(&self, days: &Settings) -> Vec<Seen> {
        let is_of_today =
            |seen: &Seen| days.day_of(UNIX_EPOCH + Duration::from_secs(seen.at)) == days.today();
        let cleared = Self(with_ending(&self.0, ".seen"));
        if !cleared.0.is_file() {
            return Vec::new();
        }
        let text = std::fs::read_to_string(&cleared.0).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(is_of_today);
        events.collect()
    }

    /// Returns the stored events, each once: every run tells of those that still hold. A last line cut by a crash is left
    /// out.
    pub(crate) fn read(&self) -> io::Result<Vec<Seen>> {
        match std::fs::metadata(&self.0) {
            // Opening a pipe would wait for a writer, and no signal would end that.
            Ok(found) if !found.is_file() => return Err(io::Error::other("it is no file")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let file = File::open(&self.0)?;
        let lines: Vec<String> = BufReader::new(file).lines().collect::<io::Result<_>>()?;
        let mut events = Vec::with_capacity(lines.len());
        for (number, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                Ok(seen) => events.push(seen),
                Err(_) if number + 1 == lines.len() => {}
                Err(error) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("line {}: {error}", number + 1),
                    ));
                }
            }
        }
        let events = once_each(events);
        // Their texts quote them.
        events.iter().filter_map(|seen: &Seen| seen.order_id.as_deref()).for_each(|id| drop(identifier(id)));
        Ok(events)
    }
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Locks a journal against runs; `None` if it was never begun.
fn lock_of(journal: &Path) -> io::Result<Option<File>> {
    let file = match OpenOptions::new().read(true).write(true).open(with_ending(journal, ".lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Told;

    /// Regression: the command waited for a writer, and no signal ended it.
    #[cfg(unix)]
    #[test]
    fn c09_a_pipe_in_place_of_the_events_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::beside(&folder.path().join("o.journal"));
        assert!(std::process::Command::new("mkfifo").arg(kept.path()).status().unwrap().success());
        assert_eq!(kept.read().unwrap_err().to_string(), "it is no file");
    }

    #[test]
    fn c03_what_was_kept_is_read_again_but_for_a_torn_end() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::beside(&folder.path().join("j"));
        assert!(kept.read().unwrap().is_empty());
        let Told::Stands(seen) = Told::missed(1) else { panic!("it stands") };
        // Two times some events were missed, not one.
        kept.keep(&seen).unwrap();
        kept.keep(&seen).unwrap();
        let mut file = OpenOptions::new().append(true).open(kept.path()).unwrap();
        file.write_all(b"{\"at\":").unwrap();
        assert_eq!(kept.read().unwrap(), [seen.clone(), seen]);
    }

    #[test]
    fn c03_what_was_cleared_on_an_earlier_day_is_told_again() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("j");
        let (kept, days) = (Kept::beside(&journal), Settings::default());
        let Told::Stands(now) = Told::missed(1) else { panic!("it stands") };
        let yesterday = crate::events::Seen { at: now.at - 86_400, ..now.clone() };
        assert!(kept.cleared(&days).is_empty());
        for seen in [&yesterday, &now] {
            kept.keep(seen).unwrap();
        }
        kept.clear(&journal).unwrap();
        assert_eq!(kept.cleared(&days), [now]);
    }
}
