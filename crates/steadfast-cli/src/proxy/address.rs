use std::{io::ErrorKind, net::SocketAddr, time::Duration};

use tokio::{
    net::TcpListener,
    time::{Instant, sleep},
};

use crate::exit::Failed;

/// How long a process that was killed may hold its address after its locks are free.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

/// Listens at an address, once the process before this one has left it.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, Failed> {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => sleep(PAUSE).await,
            bound => {
                return bound.map_err(|error| Failed::error(format!("cannot listen on {address}: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a sidecar that was started again right after `kill -9` ended at once, because the address was not free yet.
    #[tokio::test]
    async fn an_address_that_is_not_free_yet_is_waited_for() {
        let old = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = old.local_addr().unwrap();
        let began = Instant::now();
        let bound = tokio::spawn(bind(address));
        sleep(Duration::from_millis(300)).await;
        assert!(!bound.is_finished());
        drop(old);
        let new = bound.await.unwrap().unwrap();
        assert_eq!(new.local_addr().unwrap(), address);
        let refused = bind(address).await.map(drop).unwrap_err().to_string();
        assert!(refused.contains("cannot listen on"), "{refused}");
        assert!(began.elapsed() >= PATIENCE);
    }
}
