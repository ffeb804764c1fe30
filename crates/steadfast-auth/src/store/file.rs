mod disk;

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use secrecy::{ExposeSecret, SecretSlice};

use super::{Record, StoreError, StoreLease, TokenStore};

/// Keeps the record in a file that only its owner may read, shared by all processes of the machine.
///
/// Beside `PATH` there is `PATH.lock`, which the process that logs in holds locked *during the login*.
///
/// 1. Files have mode 0600, are written beside the old one and renamed into place; the directory is synced too. A
///    reader sees the old record or the new one.
/// 2. A file that others may read or that another user owns, a symbolic link, and a directory that others may write to
///    are refused by name: for the record, its lock and `otp.place`. The checks are made on the opened file. Except on
///    Unix, owners and permissions are not checked.
/// 3. The lock ends with its process, however that ends; the lock file stays.
/// 4. All stores of a directory share `otp.place`. It spaces the logins of several accounts in the OTP zone, which
///    counts by address (§8).
/// 5. All stores of a directory share one `user-….json` for each user. It holds what the user's logins with several API
///    keys have in common: the failures of the account, and the submitted one-time codes.
///
/// 6. A record that cannot be read is refused by name, and no login is sent, because its counts are lost. This program
///    never leaves such a file. [`reset`](TokenStore::reset) replaces it.
///
/// It must lie on a local file system whose locks work.
///
/// # Example
///
/// ```no_run
/// use steadfast_auth::{FileStore, Login, TokenSource};
///
/// # fn source(api_key: steadfast_auth::ApiKey, login: impl Login) -> Result<(), steadfast_auth::StoreError> {
/// let store = FileStore::open("/home/trader/.local/state/steadfast/auth.json")?;
/// let source = TokenSource::builder(api_key, login).store(store).build();
/// # drop(source);
/// # Ok(())
/// # }
/// ```
///
/// # Clone
///
/// Clones are the same file.
#[derive(Clone, Debug)]
pub struct FileStore {
    paths: Arc<Paths>,
}

#[derive(Debug)]
struct Paths {
    record: PathBuf,
    lock: PathBuf,
    new_record: PathBuf,
    // Shared by all accounts of the directory.
    otp_place: PathBuf,
}

/// The lease of a [`FileStore`]: its file lock.
#[derive(Debug)]
pub struct FileLease {
    paths: Arc<Paths>,
    // Shared with a running write, which holds the lock even after its future was dropped.
    lock: Arc<File>,
}

/// How often a lock that another process holds is tried.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

impl FileStore {
    /// Opens the store at `path`. Makes its directory if it is missing, for its owner only.
    ///
    /// # Errors
    ///
    /// [`StoreError`], which names the file or directory that others may use, or that cannot be used.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let paths = Paths::of(path.into());
        disk::prepare_directory(&paths.record)?;
        drop(disk::open(&paths.record)?);
        Ok(Self { paths: Arc::new(paths) })
    }

    /// Returns the path of the record.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.paths.record
    }
}

impl Paths {
    fn of(record: PathBuf) -> Self {
        let beside = |suffix: &str| {
            let mut name = record.clone().into_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self {
            lock: beside(".lock"),
            new_record: beside(".new"),
            otp_place: record.with_file_name("otp.place"),
            record,
        }
    }
}

impl TokenStore for FileStore {
    type Lease = FileLease;

    fn name(&self) -> String {
        self.paths.record.display().to_string()
    }

    fn of_user(&self, label: &str) -> Option<Self> {
        let path = self.paths.record.with_file_name(format!("user-{label}.json"));
        Some(Self { paths: Arc::new(Paths::of(path)) })
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        let paths = Arc::clone(&self.paths);
        blocking(move || read(&paths.record)).await
    }

    async fn lease(&self) -> Result<FileLease, StoreError> {
        let paths = Arc::clone(&self.paths);
        let lock = blocking(move || disk::open_lock(&paths.lock)).await?;
        // Polled, not waited for: a blocked thread could not be told that its caller was dropped.
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => tokio::time::sleep(BETWEEN_TRIES).await,
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::io(self.paths.lock.display(), error));
                }
            }
        }
        Ok(FileLease { paths: Arc::clone(&self.paths), lock: Arc::new(lock) })
    }
}

impl StoreLease for FileLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        let (paths, lock) = (Arc::clone(&self.paths), Arc::clone(&self.lock));
        let bytes: SecretSlice<u8> = record.encode();
        blocking(move || {
            let _held = lock;
            let kept = match read(&paths.record) {
                Ok(kept) => kept.map_or(0, |kept| kept.revision()),
                Err(StoreError::Garbled { .. }) => 0,
                Err(error) => return Err(error),
            };
            if kept != over {
                return Err(StoreError::Superseded { place: paths.record.display().to_string() });
            }
            disk::replace(&paths.record, &paths.new_record, bytes.expose_secret())
        })
        .await
    }

    async fn otp_place(&mut self, now: i64) -> Result<Duration, StoreError> {
        // Taking a place needs microseconds. Do not wait long for a process that was stopped while taking one.
        for tried in 0..50 {
            let paths = Arc::clone(&self.paths);
            let now = now + tried * 10;
            match blocking(move || disk::take_place(&paths.otp_place, now)).await? {
                Some(wait) => return Ok(wait),
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        Ok(Duration::ZERO)
    }
}

fn read(path: &Path) -> Result<Option<Record>, StoreError> {
    let Some(bytes) = disk::read(path)? else { return Ok(None) };
    let bytes = SecretSlice::from(bytes);
    Record::decode(bytes.expose_secret(), &path.display().to_string()).map(Some)
}

/// Runs file work on a thread where it blocks no other task.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Other(io::Error::other(error).into())),
    }
}
