use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind,
    aio::MultiplexedConnection, cmd,
};
use steadfast_call::BootClock;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    error::{StoreError, Unfit},
    fitness::Info,
    place::{NotFound, Place},
    rule::{Micros, Rule},
    script::{Script, acquire_arguments, lend_arguments, read_arguments, settle_arguments},
    store_clock::StoreClock,
    windows::Ask,
};

/// How long a connection or an answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// How long a replica has to say that it has what was written: less than a call may take.
const REPLICATES_WITHIN: Duration = Duration::from_millis(500);

/// How long after a failed connection the next one is tried.
const TRIES_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The server, and the one connection that all calls share.
pub(crate) struct Store {
    place: Place,
    name: Arc<str>,
    link: Mutex<Link>,
    /// By key: each has a clock of its own.
    clocks: parking_lot::Mutex<HashMap<Box<str>, StoreClock>>,
    boot: BootClock,
    began: Instant,
}

#[derive(Default)]
struct Link {
    open: Option<Open>,
    failed: Option<(Instant, StoreError)>,
    /// The number of the connection, so that a late error ends no newer one.
    number: u64,
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    number: u64,
    run: Arc<str>,
    acquire: Arc<str>,
    settle: Arc<str>,
    lend: Arc<str>,
    read: Arc<str>,
    /// A replica may come to take its place.
    has_replicas: bool,
}

/// The store's word about some requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// How many of them are granted, from the first one on.
    pub(crate) granted: usize,
    /// When to ask for the others again.
    pub(crate) wait: Duration,
}

/// The server's answer to a script: its decision, what the key's clock shows, and how long to wait.
type Reply = (i64, Micros, Micros);

impl Store {
    pub(crate) fn new(
        address: &str,
        root_certificates: Option<Vec<u8>>,
        boot: BootClock,
    ) -> Result<Self, StoreError> {
        // The program may have chosen another one, which does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let place = Place::new(address, root_certificates)?;
        let name = place.name();
        Ok(Self {
            place,
            name,
            link: Mutex::default(),
            clocks: parking_lot::Mutex::default(),
            boot,
            began: Instant::now(),
        })
    }

    /// Connects, if there is no connection.
    pub(crate) async fn connect(&self) -> Result<(), StoreError> {
        self.open().await.map(|_| ())
    }

    /// Asks for permits, or tells how long to wait for them. After an error they may have been granted.
    pub(crate) async fn acquire(
        &self,
        key: &str,
        rule: &Rule,
        asks: &[Ask<'_>],
    ) -> Result<Asked, StoreError> {
        let arguments = |latest| acquire_arguments(rule, asks, latest);
        let (granted, _, wait) = self.call(Script::ACQUIRE, key, arguments).await?;
        let granted = usize::try_from(granted).map_err(|_| self.is_garbled())?;
        Ok(Asked { granted, wait: Duration::from_micros(wait.max(0).unsigned_abs()) })
    }

    /// Records an answer.
    pub(crate) async fn settle(&self, key: &str, rule: &Rule, id: &str) -> Result<(), StoreError> {
        self.call(Script::SETTLE, key, |latest| settle_arguments(rule, id, latest)).await.map(|_| ())
    }

    /// Lends the slot of a granted request for `life`. False if it cannot be lent.
    pub(crate) async fn lend(
        &self,
        key: &str,
        rule: &Rule,
        id: &str,
        life: Micros,
    ) -> Result<bool, StoreError> {
        let arguments = |latest| lend_arguments(rule, id, life, latest);
        let (lent, ..) = self.call(Script::LEND, key, arguments).await?;
        Ok(lent == 1)
    }

    /// Reads the clock of a key.
    pub(crate) async fn read(&self, key: &str) -> Result<(), StoreError> {
        self.call(Script::READ, key, read_arguments).await.map(|_| ())
    }

    /// Takes back a request that never left, and its place among those who wait.
    pub(crate) async fn refund(&self, key: &str, id: &str) -> Result<(), StoreError> {
        let mut remove = cmd("ZREM");
        self.query(remove.arg(key).arg(id).arg(format!("w{id}"))).await
    }

    /// Sends a command that no run of the server executes wrongly.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.query_by(self.open().await?, command).await
    }

    /// Sends a command by this connection, which is closed if it fails.
    async fn query_by<T: FromRedisValue>(&self, open: Open, command: &Cmd) -> Result<T, StoreError> {
        let Open { mut connection, number, .. } = open;
        match command.query_async(&mut connection).await {
            Ok(reply) => Ok(reply),
            Err(error) => Err(self.close(number, &error).await),
        }
    }

    /// Evaluates a script whose text names the run of the server that it is sent to: a connection goes to one run.
    pub(crate) async fn evaluate<T: FromRedisValue>(
        &self,
        text: impl FnOnce(&str) -> String,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<T, StoreError> {
        let open = self.open().await?;
        let script = evaluation(&text(&open.run), keys, arguments);
        self.query_by(open, &script).await
    }

    /// The same, and fails if no replica has what was written by then, where one may come to take the server's place. The
    /// calls of the connection wait for that.
    pub(crate) async fn evaluate_kept<T: FromRedisValue>(
        &self,
        text: impl FnOnce(&str) -> String,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<T, StoreError> {
        let open = self.open().await?;
        let script = evaluation(&text(&open.run), keys, arguments);
        if !open.has_replicas {
            return self.query_by(open, &script).await;
        }
        let Open { mut connection, number, .. } = open;
        let mut both = redis::pipe();
        both.add_command(script);
        both.cmd("WAIT").arg(1).arg(REPLICATES_WITHIN.as_millis() as u64);
        match both.query_async::<(T, u64)>(&mut connection).await {
            Ok((_, 0)) => Err(self.unreachable("no replica has what was written")),
            Ok((reply, _)) => Ok(reply),
            Err(error) => Err(self.close(number, &error).await),
        }
    }

    /// Returns the same store, with a connection of its own.
    pub(crate) fn another(&self) -> Self {
        Self {
            place: self.place.clone(),
            name: Arc::clone(&self.name),
            link: Mutex::default(),
            clocks: parking_lot::Mutex::default(),
            boot: self.boot.clone(),
            began: self.began,
        }
    }

    /// Returns its host and port.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Fails if others may read what goes to the store.
    pub(crate) fn check_is_local(&self) -> Result<(), StoreError> {
        if self.place.is_local() {
            return Ok(());
        }
        Err(StoreError::Unfit { store: Arc::clone(&self.name), why: Unfit::NeedsSeal })
    }

    /// Returns the time by this process's own clock, which counts the sleep of the machine where it can.
    pub(crate) fn now(&self) -> Micros {
        let now = self.boot.now().unwrap_or_else(|| self.began.elapsed());
        Micros::try_from(now.as_micros()).unwrap_or(Micros::MAX / 8)
    }

    async fn call(
        &self,
        script: Script,
        key: &str,
        arguments: impl Fn(Option<Micros>) -> Vec<String>,
    ) -> Result<Reply, StoreError> {
        // A second server that does not know the script either has come in between: that is one failure too many.
        let mut loaded = false;
        loop {
            let mut open = self.open().await?;
            let sent = self.now();
            let latest = self.clocks.lock().get(key).and_then(|clock| clock.latest(sent));
            let known = match script {
                Script::ACQUIRE => &open.acquire,
                Script::SETTLE => &open.settle,
                Script::LEND => &open.lend,
                _ => &open.read,
            };
            let mut evaluate = cmd("EVALSHA");
            evaluate.arg(&**known).arg(1).arg(key).arg(arguments(latest));
            match evaluate.query_async::<Reply>(&mut open.connection).await {
                Ok(reply) => {
                    let received = self.now();
                    let mut clocks = self.clocks.lock();
                    clocks.entry(key.into()).or_default().observe(reply.1, latest, sent, received);
                    return Ok(reply);
                }
                // Another run of the server. It has executed nothing.
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) && !loaded => {
                    loaded = true;
                    self.close(open.number, &error).await;
                }
                Err(error) => return Err(self.close(open.number, &error).await),
            }
        }
    }

    async fn open(&self) -> Result<Open, StoreError> {
        let mut link = self.link.lock().await;
        if let Some(open) = &link.open {
            return Ok(open.clone());
        }
        if let Some((failed, error)) = &link.failed
            && failed.elapsed() < TRIES_AGAIN_AFTER
        {
            return Err(error.clone());
        }
        link.number += 1;
        let open = match timeout(ANSWERS_WITHIN, self.dial(link.number)).await {
            Ok(open) => open,
            Err(_) => Err(self.is_silent()),
        };
        match open {
            Ok(open) => {
                link.failed = None;
                Ok(link.open.insert(open).clone())
            }
            Err(error) => {
                link.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Connects, checks the server and loads the scripts for its run.
    async fn dial(&self, number: u64) -> Result<Open, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(ANSWERS_WITHIN))
            .set_response_timeout(Some(ANSWERS_WITHIN));
        let mut connection = self.place.connect(&config).await.map_err(|not_found| match not_found {
            NotFound::Asked(error) => self.error(&error),
            NotFound::NotNamed => self.unreachable("most sentinels name no server that is up"),
        })?;
        let info: String =
            cmd("INFO").query_async(&mut connection).await.map_err(|error| self.error(&error))?;
        let info = Info(&info);
        info.check(self.place.is_watched())
            .map_err(|why| StoreError::Unfit { store: Arc::clone(&self.name), why })?;
        let run = info.run().ok_or_else(|| self.unreachable("it does not name its run"))?;
        let scripts = [Script::ACQUIRE, Script::SETTLE, Script::LEND, Script::READ];
        let mut shas = scripts.map(|_| Arc::from(""));
        for (sha, script) in shas.iter_mut().zip(scripts) {
            let mut load = cmd("SCRIPT");
            load.arg("LOAD").arg(script.text(run));
            let loaded: String =
                load.query_async(&mut connection).await.map_err(|error| self.error(&error))?;
            *sha = loaded.into();
        }
        let [acquire, settle, lend, read] = shas;
        let has_replicas = info.needs_replicas();
        Ok(Open { connection, number, run: run.into(), acquire, settle, lend, read, has_replicas })
    }

    /// Ends a connection that has failed, and says why it did.
    async fn close(&self, number: u64, error: &RedisError) -> StoreError {
        let mut link = self.link.lock().await;
        if link.open.as_ref().is_some_and(|open| open.number == number) {
            link.open = None;
        }
        self.error(error)
    }

    fn error(&self, error: &RedisError) -> StoreError {
        match error.kind() {
            ErrorKind::AuthenticationFailed => StoreError::PasswordRefused { store: Arc::clone(&self.name) },
            _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => {
                StoreError::PasswordRefused { store: Arc::clone(&self.name) }
            }
            // The code alone: the rest of the text is the server's.
            _ => match error.code() {
                Some(code) => self.unreachable(&format!("{} ({code})", error.category())),
                None => self.unreachable(error.category()),
            },
        }
    }

    /// Returns the error of a call that was given up.
    pub(crate) fn is_silent(&self) -> StoreError {
        self.unreachable("no answer in time")
    }

    /// Returns the error of a reply that none of its scripts gives.
    pub(crate) fn is_garbled(&self) -> StoreError {
        self.unreachable("it gave a reply that is not understood")
    }

    fn unreachable(&self, why: &str) -> StoreError {
        StoreError::Unreachable { store: Arc::clone(&self.name), why: why.into() }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.name).finish_non_exhaustive()
    }
}

fn evaluation(text: &str, keys: &[String], arguments: &[&[u8]]) -> Cmd {
    let mut evaluate = cmd("EVAL");
    evaluate.arg(text).arg(keys.len()).arg(keys).arg(arguments);
    evaluate
}
