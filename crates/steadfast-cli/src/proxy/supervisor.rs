//! Messages to systemd about a proxy: that it is ready, that it ends, and that it lives.
//!
//! The protocol is that of `sd_notify(3)`: lines of text in a datagram to the socket that `NOTIFY_SOCKET` names. Without
//! the variable nothing is told.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    time::Duration,
};

use tokio::time::{MissedTickBehavior, interval};

/// The service manager behind this process, if there is one.
pub(super) struct Supervisor {
    at: Option<OsString>,
    /// The time within which it wants to hear that this process lives.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Reads the environment. A watchdog of another process is ignored.
    pub(super) fn of_environment() -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let is_meant = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        Self { at: env::var_os("NOTIFY_SOCKET"), watchdog: watchdog.map(Duration::from_micros) }
    }

    pub(super) fn ready(&self) {
        self.tell("READY=1\nSTATUS=trading\n");
    }

    /// Says that the configuration is read again; [`ready`](Self::ready) says that it is over.
    pub(super) fn reloading(&self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", monotonic_micros()));
    }

    /// Says that the end has begun, and how long it may take.
    pub(super) fn stopping(&self, within: Duration) {
        let micros = within.as_micros();
        self.tell(&format!(
            "STOPPING=1\nSTATUS=answering what is on its way\nEXTEND_TIMEOUT_USEC={micros}\n"
        ));
    }

    /// Says twice in each period that this process lives, whenever `is_alive` has returned.
    pub(super) async fn watch(&self, is_alive: impl Fn()) {
        let Some(period) = self.watchdog else { return };
        let mut ticks = interval((period / 2).max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            is_alive();
            self.tell("WATCHDOG=1\n");
        }
    }

    fn tell(&self, words: &str) {
        if let Some(at) = &self.at {
            // A service manager that has gone hears nothing, and that is no reason to end.
            let _ = send(at, words);
        }
    }
}

/// Returns the time of the clock by which systemd orders reloads.
#[cfg(unix)]
fn monotonic_micros() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

#[cfg(not(unix))]
fn monotonic_micros() -> i64 {
    0
}

#[cfg(unix)]
fn send(at: &OsStr, words: &str) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::{
        ffi::OsStrExt,
        net::{SocketAddr, UnixDatagram},
    };

    let address = match at.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(at)?,
    };
    let socket = UnixDatagram::unbound()?;
    // A service manager that does not read must not hold a proxy up.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(words.as_bytes(), &address).map(|_| ())
}

#[cfg(not(unix))]
fn send(_: &OsStr, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_service_manager_hears_of_start_life_and_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let heard = || {
            let mut words = [0; 200];
            let length = manager.recv(&mut words).unwrap();
            String::from_utf8_lossy(&words[..length]).into_owned()
        };
        let watchdog = Some(Duration::from_secs(4));
        let supervisor = Supervisor { at: Some(path.into()), watchdog };
        supervisor.ready();
        assert!(heard().starts_with("READY=1\n"));
        let watched = tokio::time::timeout(Duration::from_secs(5), supervisor.watch(|| ()));
        assert!(watched.await.is_err());
        assert_eq!([heard(), heard(), heard()], ["WATCHDOG=1\n"; 3], "at once, after 2 s, after 4 s");
        supervisor.stopping(Duration::from_secs(120));
        let told = heard();
        assert!(
            told.starts_with("STOPPING=1\n") && told.contains("EXTEND_TIMEOUT_USEC=120000000\n"),
            "{told}"
        );
        // It is gone, and that holds nothing up.
        drop(manager);
        supervisor.ready();
    }
}
