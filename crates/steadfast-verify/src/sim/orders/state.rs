//! A campaign that outlives its process.

use std::{
    collections::BTreeSet,
    error::Error,
    ffi::OsString,
    fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use steadfast_call::file::replace_own;

use crate::sim::orders::outcome::Outcome;

/// The progress of a campaign, in one mode with the code of one commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    pub(crate) commit: String,
    /// The command line options that change what is promised or assumed.
    pub(crate) modes: String,
    pub(crate) first_seed: u64,
    /// Every seed before this one is done.
    pub(crate) next_seed: u64,
    /// Seeds that are done beyond that, because threads overtake each other.
    pub(crate) ahead: BTreeSet<u64>,
    pub(crate) outcome: Outcome,
}

impl Run {
    /// Creates a run without progress.
    pub(crate) fn from(commit: &str, modes: &str, first_seed: u64) -> Self {
        let (commit, modes) = (commit.to_owned(), modes.to_owned());
        Self { commit, modes, first_seed, next_seed: first_seed, ..Self::default() }
    }

    /// Adds the result of a finished seed.
    pub(crate) fn finish(&mut self, seed: u64, outcome: Outcome) {
        self.outcome.add(outcome);
        self.ahead.insert(seed);
        while self.ahead.remove(&self.next_seed) {
            self.next_seed += 1;
        }
    }

    /// Sets how long it has taken in all, over all its processes.
    pub(crate) fn took(&mut self, elapsed: Duration) {
        self.outcome.elapsed = elapsed;
    }

    /// Puts its failures in the order of their seeds.
    pub(crate) fn sort(&mut self) {
        self.outcome.failures.sort_by_key(|failure| failure.seed);
    }

    pub(crate) fn is_done(&self, seed: u64) -> bool {
        seed < self.next_seed || self.ahead.contains(&seed)
    }
}

/// The file of a campaign, with all its runs; only one process uses it at a time.
///
/// It is replaced as a whole, so a killed process loses only the seeds since the last write.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    runs: Vec<Run>,
    /// Held for as long as the campaign runs.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Stored<R> {
    version: u32,
    runs: R,
}

const VERSION: u32 = 1;

impl StateFile {
    /// Opens the campaign of this name, or begins it.
    ///
    /// # Errors
    ///
    /// The file is damaged, of another version, in use by another process, or cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self, StateError> {
        let beside = beside(path, ".lock");
        let lock = File::create(&beside).map_err(|error| StateError::of(path, Cause::Io(error)))?;
        if lock.try_lock().is_err() {
            return Err(StateError::of(path, Cause::InUse));
        }
        let runs = match fs::read_to_string(path) {
            Ok(text) => parse(&text).map_err(|cause| StateError::of(path, cause))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(StateError::of(path, Cause::Io(error))),
        };
        Ok(Self { path: path.to_owned(), runs, _lock: lock })
    }

    /// Returns the progress of this commit and mode. A new commit continues with seeds that no earlier one has run.
    pub(crate) fn resume(&self, commit: &str, modes: &str, first_seed: u64) -> Run {
        let same = |run: &&Run| run.modes == modes && run.next_seed > first_seed;
        let known = self.runs.iter().filter(same).find(|run| run.commit == commit);
        known.cloned().unwrap_or_else(|| {
            let ends = self.runs.iter().filter(same).map(|run| run.next_seed.max(last(&run.ahead)));
            Run::from(commit, modes, ends.max().unwrap_or(first_seed))
        })
    }

    /// Returns all runs, oldest first.
    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Saves the progress of `run`.
    ///
    /// # Errors
    ///
    /// The error of writing the file; the previous one is still whole.
    pub(crate) fn keep(&mut self, run: &Run) -> Result<(), StateError> {
        match self.runs.iter_mut().find(|old| old.commit == run.commit && old.modes == run.modes) {
            Some(old) => old.clone_from(run),
            None => self.runs.push(run.clone()),
        }
        self.write().map_err(|error| StateError::of(&self.path, Cause::Io(error)))
    }

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_string(&Stored { version: VERSION, runs: &self.runs })?;
        let new = beside(&self.path, ".new");
        replace_own(
            &self.path,
            &new,
            format!("{text}\n{:08x}\n", crc32fast::hash(text.as_bytes())).as_bytes(),
        )
    }
}

fn last(ahead: &BTreeSet<u64>) -> u64 {
    ahead.last().map_or(0, |seed| seed + 1)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn parse(text: &str) -> Result<Vec<Run>, Cause> {
    let (text, sum) = text.split_once('\n').ok_or(Cause::Torn)?;
    if sum.trim_end() != format!("{:08x}", crc32fast::hash(text.as_bytes())) || !sum.ends_with('\n') {
        return Err(Cause::Torn);
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_str(text).map_err(|_| Cause::Torn)?;
    if version != VERSION {
        return Err(Cause::Version(version));
    }
    let stored: Stored<Vec<Run>> = serde_json::from_str(text).map_err(|_| Cause::Torn)?;
    Ok(stored.runs)
}

/// Why a campaign cannot be continued.
#[derive(Debug)]
pub(crate) struct StateError {
    path: PathBuf,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Torn,
    Version(u32),
    InUse,
    Io(io::Error),
}

impl StateError {
    fn of(path: &Path, cause: Cause) -> Self {
        Self { path: path.to_owned(), cause }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "campaign {}: ", self.path.display())?;
        match &self.cause {
            Cause::Torn => f.write_str("the file is damaged; move it away to begin a new campaign"),
            Cause::Version(version) => write!(f, "written in version {version}, not {VERSION}"),
            Cause::InUse => f.write_str("another process is at it"),
            Cause::Io(error) => write!(f, "{error}"),
        }
    }
}

impl Error for StateError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("steadfast-state-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn outcome(seeds: u64) -> Outcome {
        Outcome { seeds, ..Outcome::default() }
    }

    #[test]
    fn a_campaign_goes_on_where_it_was_and_counts_each_seed_once() {
        let folder = folder("resume");
        let path = folder.join("campaign");
        let mut file = StateFile::open(&path).unwrap();
        let mut run = file.resume("abc", "", 5);
        for seed in [5, 7, 6, 9] {
            run.finish(seed, outcome(1));
        }
        file.keep(&run).unwrap();
        drop(file);

        let file = StateFile::open(&path).unwrap();
        let run = file.resume("abc", "", 5);
        assert_eq!((run.next_seed, run.outcome.seeds, run.first_seed), (8, 4, 5));
        assert_eq!((5..11).filter(|&seed| !run.is_done(seed)).collect::<Vec<_>>(), [8, 10]);
        // Another commit has its own sums and new seeds; another mode starts from the beginning.
        let other = file.resume("def", "", 5);
        assert_eq!((other.first_seed, other.outcome.seeds), (10, 0));
        assert_eq!(file.resume("abc", " --plain", 5).first_seed, 5);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_name() {
        let folder = folder("torn");
        let path = folder.join("campaign");
        let mut file = StateFile::open(&path).unwrap();
        let mut run = file.resume("abc", "", 0);
        run.finish(0, outcome(1));
        file.keep(&run).unwrap();
        drop(file);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let error = StateFile::open(&path).unwrap_err().to_string();
            assert!(error.contains("campaign") && error.contains("damaged"), "{length}: {error}");
        }
        for byte in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[byte] ^= 1;
            fs::write(&path, flipped).unwrap();
            assert!(StateFile::open(&path).is_err(), "byte {byte}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_processes_do_not_share_a_campaign() {
        let folder = folder("shared");
        let path = folder.join("campaign");
        let first = StateFile::open(&path).unwrap();
        assert!(StateFile::open(&path).unwrap_err().to_string().contains("another process"));
        drop(first);
        assert!(StateFile::open(&path).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
