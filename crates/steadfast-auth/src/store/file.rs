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

/// Keeps the record in a file that its owner alone may read, shared by all processes of the machine.
///
/// Beside `PATH` there is `PATH.lock`, which whoever logs in holds locked *during the login*.
///
/// 1. Files are made with mode 0600, written beside and renamed into place; the directory is synced too. A reader
///    sees the old record or the new one.
/// 2. A file that others may read or that is another user's, a symbolic link, and a directory in which others may write
///    are refused by name: the record, its lock and `otp.place` alike. What is opened is what is looked at. Elsewhere than
///    on Unix owners and permissions are not looked at.
/// 3. The lock ends with its process, however that ends; the file of the lock stays.
/// 4. All stores of a directory share `otp.place`, by which logins of several accounts keep their distance in the OTP
///    zone, which counts by address (§8).
/// 5. All stores of a directory share one `user-….json` for each user, which holds what his logins with several API keys
///    have in common: the failures of his account, and the one-time codes that were submitted.
///
/// 6. A record that cannot be read is refused by name, and no login is sent: what it has counted is lost. This program leaves
///    none; [`reset`](TokenStore::reset) begins it anew.
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
    // Of all accounts of the directory.
    otp_place: PathBuf,
}

/// The lease of a [`FileStore`]: its file lock.
#[derive(Debug)]
pub struct FileLease {
    paths: Arc<Paths>,
    // A write that goes on after its future was dropped holds the lock too.
    lock: Arc<File>,
}

/// How often a lock that somebody else holds is tried.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

impl FileStore {
    /// The store at `path`; its directory is made if it is missing, for its owner only.
    ///
    /// # Errors
    ///
    /// [`StoreError`] naming the file or directory that others may use, or that cannot be used.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let paths = Paths::of(path.into());
        disk::prepare_directory(&paths.record)?;
        drop(disk::open(&paths.record)?);
        Ok(Self { paths: Arc::new(paths) })
    }

    /// The record's path.
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
        // Tried again and again instead of waited for: a blocked thread could not be told that its caller has gone.
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
        // A place is taken in microseconds; whoever was stopped while he took his is not waited for.
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

/// Runs file work where it stops no other task.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Other(io::Error::other(error).into())),
    }
}
