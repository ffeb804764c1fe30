use std::{error::Error, fmt};

use futures_util::{Stream, stream};
use steadfast_dedup::OrderEvent;
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// How many events were lost because they came faster than they were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedEvents(pub u64);

impl fmt::Display for MissedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} order events came faster than they were taken", self.0)
    }
}

impl Error for MissedEvents {}

/// Returns the events of a tracker from now on.
pub(super) fn stream_of(
    events: Receiver<OrderEvent>,
) -> impl Stream<Item = Result<OrderEvent, MissedEvents>> + Send + use<> {
    stream::unfold(events, |mut events| async move {
        let event = match events.recv().await {
            Ok(event) => Ok(event),
            Err(RecvError::Lagged(missed)) => Err(MissedEvents(missed)),
            Err(RecvError::Closed) => return None,
        };
        Some((event, events))
    })
}
