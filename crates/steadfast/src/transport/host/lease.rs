use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use steadfast_call::{BoxError, ext::Connection as _};
use tokio::time::{Sleep, sleep};

use super::{
    connection::{Connection, Finished},
    connections::{Connections, Taken},
    pool::Need,
};

/// How long hyper may take to finish an exchange whose answer has been read to its end. It does so at once, unless the
/// service answered before it had read the whole request.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection in use by one exchange. Dropped before the exchange is finished, it ends the connection.
pub(super) struct Lease<B: Send + 'static> {
    /// `None` once it is given back or ended.
    connection: Option<Connection<B>>,
    connections: Arc<Connections<B>>,
    /// True if no request has used the connection.
    pub(super) is_new: bool,
    patience: Option<Pin<Box<Sleep>>>,
}

impl<B: Send + 'static> Lease<B> {
    /// Takes a connection for one send.
    pub(super) async fn take(connections: Arc<Connections<B>>, need: Need) -> Result<Self, BoxError> {
        let Taken { connection, is_new } = connections.take(need).await?;
        Ok(Self { connection: Some(connection), connections, is_new, patience: None })
    }

    pub(super) fn connection(&mut self) -> Option<&mut Connection<B>> {
        self.connection.as_mut()
    }

    /// Ends the exchange after its answer has been read to its end, and gives the connection back if another one may
    /// follow. Returns false if the answer is not to be believed.
    pub(super) fn poll_finish(&mut self, may_follow: bool, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(true) };
        let is_finished = match connection.poll_finished(cx) {
            Poll::Ready(finished) => Some(finished),
            Poll::Pending => {
                let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
                if patience.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                None
            }
        };
        if is_finished == Some(Finished::Reusable)
            && may_follow
            && let Some(connection) = self.connection.take()
        {
            self.connections.give(connection);
        }
        self.end();
        Poll::Ready(is_finished != Some(Finished::WithRest))
    }

    /// Gives the connection back unused.
    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.connections.give(connection);
        }
    }

    fn end(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.link.abort();
        }
    }
}

impl<B: Send + 'static> Drop for Lease<B> {
    fn drop(&mut self) {
        self.end();
    }
}
