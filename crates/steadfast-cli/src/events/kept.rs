use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use steadfast::dedup::Settings;
use steadfast_call::file::open_own;

use super::{Seen, repeats::once_each};
use crate::{exit::Failed, readable::identifier};

/// Events that outlive the process: one JSON object a line, beside the journal.
pub(crate) struct Kept(PathBuf);

impl Kept {
    /// Returns the events file of a journal.
    pub(crate) fn beside(journal: &Path) -> Self {
        Self(with_ending(journal, ".events"))
    }

    /// Returns the events that earlier runs have stored beside a journal and that are not cleared.
    pub(crate) fn standing(journal: Option<&Path>) -> Result<Vec<Seen>, Failed> {
        let Some(kept) = journal.map(Self::beside) else { return Ok(Vec::new()) };
        kept.check().and_then(|()| kept.read()).map_err(|error| {
            Failed::usage(format_args!("{}: {error}: nothing was sent", kept.path().display()))
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes one event, durable on return.
    pub(crate) fn keep(&self, seen: &Seen) -> io::Result<()> {
        append(&self.0, &serde_json::to_vec(seen)?)
    }

    /// Fails if no event can be written: the file is another user's, or open to others, or no file. One that does not
    /// exist is made by the first event.
    pub(crate) fn check(&self) -> io::Result<()> {
        match open_own(&self.0, File::options().read(true).append(true)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
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
            append(&with_ending(&self.0, ".seen"), text.strip_suffix(b"\n").unwrap_or(&text))?;
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
        let text = std::fs::read(&cleared.0).unwrap_or_default();
        let events = lines_of(&text).filter_map(|line| serde_json::from_slice(line).ok()).filter(is_of_today);
        events.collect()
    }

    /// Returns the stored events, each once: every run tells of those that still hold. A line that was cut by a crash or
    /// a full disk is left out. Any other line that cannot be read is an event of its own, so that it hides none.
    pub(crate) fn read(&self) -> io::Result<Vec<Seen>> {
        match std::fs::metadata(&self.0) {
            // Opening a pipe would wait for a writer, and no signal would end that.
            Ok(found) if !found.is_file() => return Err(io::Error::other("it is no file")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let text = std::fs::read(&self.0)?;
        let mut events = Vec::new();
        for (number, line) in lines_of(&text).enumerate() {
            match serde_json::from_slice(line) {
                Ok(seen) => events.push(seen),
                Err(error) if error.is_eof() => {}
                Err(_) => events.push(Seen::unreadable(&self.0, number + 1)),
            }
        }
        let events = once_each(events);
        // Their texts quote them.
        events.iter().filter_map(|seen: &Seen| seen.order_id.as_deref()).for_each(|id| drop(identifier(id)));
        Ok(events)
    }
}

fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// Writes a line to the end of a file of this user, durable on return. It makes the file if there is none.
fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.read(true).append(true);
    let (mut file, is_new) = match open_own(path, &options) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (open_own(path, options.create(true))?, true)
        }
        opened => (opened?, false),
    };
    let mut text = Vec::with_capacity(line.len() + 2);
    // A crash or a full disk may have cut the last line. This one would be part of it.
    if !ends_with_a_line(&mut file)? {
        text.push(b'\n');
    }
    text.extend_from_slice(line);
    text.push(b'\n');
    file.write_all(&text)?;
    file.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if is_new && cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}

/// Returns whether the file is empty, or its last line is whole.
fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
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
        cut(&kept, b"{\"at\":");
        assert_eq!(kept.read().unwrap(), [seen.clone(), seen]);
    }

    fn cut(kept: &Kept, line: &[u8]) {
        OpenOptions::new().append(true).open(kept.path()).unwrap().write_all(line).unwrap();
    }

    /// Regression: the next event became part of the cut line, and was lost. The one after it stopped every verb, the
    /// clearing of events included.
    #[test]
    fn c03_an_event_behind_a_cut_line_is_kept_and_stops_no_verb() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("j");
        for line in [&b"{\"at\":"[..], b"{\"at\":1,\"event\":\"ex", b"{\"at\":1,\"event\":\"\xe2\x82"] {
            let kept = Kept::beside(&journal);
            let Told::Stands(seen) = Told::missed(1) else { panic!("it stands") };
            kept.keep(&seen).unwrap();
            cut(&kept, line);
            kept.keep(&seen).unwrap();
            kept.keep(&seen).unwrap();
            assert_eq!(kept.read().unwrap(), [seen.clone(), seen.clone(), seen.clone()]);
            assert_eq!(kept.clear(&journal).unwrap().len(), 3);
            assert!(kept.read().unwrap().is_empty());
        }
        // Those that were cleared stand behind each other likewise.
        assert_eq!(Kept::beside(&journal).cleared(&Settings::default()).len(), 9);
    }

    /// Regression: such a line stopped every verb.
    #[test]
    fn c03_a_line_that_cannot_be_read_is_told_and_hides_no_event() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::beside(&folder.path().join("j"));
        let Told::Stands(seen) = Told::missed(1) else { panic!("it stands") };
        std::fs::write(kept.path(), "{\"at\":{\"at\":1}}\n\u{7}\n").unwrap();
        cut(&kept, &serde_json::to_vec(&seen).unwrap());
        let read = kept.read().unwrap();
        let kinds: Vec<_> = read.iter().map(|seen| &*seen.event).collect();
        assert_eq!(kinds, ["unreadable", "unreadable", "missed"]);
        assert!(read[1].msg.contains("line 2 of "), "{}", read[1].msg);
    }

    /// Regression: the link was followed.
    #[cfg(unix)]
    #[test]
    fn c03_a_link_in_place_of_the_events_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::beside(&folder.path().join("j"));
        assert!(kept.check().is_ok());
        std::os::unix::fs::symlink(folder.path().join("target"), kept.path()).unwrap();
        let Told::Stands(seen) = Told::missed(1) else { panic!("it stands") };
        assert!(kept.check().is_err() && kept.keep(&seen).is_err());
        assert!(!folder.path().join("target").exists());
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
