//! The stream of states: server-sent events.
//!
//! The first event, `state`, is everything. Then `change` has those fields of the state that changed, at most twice a second,
//! and at least every two seconds the time alone, so that the page knows that it is not stale.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use serde_json::{Map, Value};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::{Instant, Interval, MissedTickBehavior, interval},
};

use super::Dashboard;
use crate::front::Scope;

/// The shortest time between two events.
const SPACING: Duration = Duration::from_millis(500);
/// The longest time between two events.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// The body of a stream's answer.
pub(crate) struct Stream {
    dashboard: Arc<Dashboard>,
    scope: Scope,
    /// Limits how many streams there are.
    _place: OwnedSemaphorePermit,
    ticks: Interval,
    changes: Changes,
    last_sent: Instant,
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl Stream {
    pub(super) fn new(
        dashboard: Arc<Dashboard>,
        scope: Scope,
        place: OwnedSemaphorePermit,
        mut stop: watch::Receiver<()>,
    ) -> Self {
        let mut ticks = interval(SPACING);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            dashboard,
            scope,
            _place: place,
            ticks,
            changes: Changes::default(),
            last_sent: Instant::now(),
            ending: Box::pin(async move { drop(stop.changed().await) }),
            is_over: false,
        }
    }

    /// Returns the next event; `None` once the listener ends.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_over || self.ending.as_mut().poll(cx).is_ready() {
            self.is_over = true;
            return Poll::Ready(None);
        }
        loop {
            ready!(self.ticks.poll_tick(cx));
            let state = serde_json::to_value(self.dashboard.state(self.scope));
            let Ok(Value::Object(state)) = state else { continue };
            if let Some(event) = self.changes.next(state, self.last_sent.elapsed() >= SIGN_OF_LIFE) {
                self.last_sent = Instant::now();
                return Poll::Ready(Some(event.into()));
            }
        }
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.get_mut().poll_next(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

/// The state that one viewer has been sent.
#[derive(Debug, Default)]
struct Changes {
    sent: Map<String, Value>,
}

impl Changes {
    /// Returns the event that brings a viewer to `state`; `None` if nothing changed and none is due.
    fn next(&mut self, state: Map<String, Value>, is_due: bool) -> Option<String> {
        let name = if self.sent.is_empty() { "state" } else { "change" };
        let differs = |(key, value): &(&String, &Value)| self.sent.get(*key) != Some(*value);
        let changed: Map<_, _> =
            state.iter().filter(differs).map(|(key, value)| (key.clone(), value.clone())).collect();
        // The time always differs.
        if !is_due && changed.keys().all(|key| key == "at") {
            return None;
        }
        self.sent = state;
        Some(format!("event: {name}\ndata: {}\n\n", Value::Object(changed)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn next(changes: &mut Changes, state: Value, is_due: bool) -> Option<(String, Value)> {
        let Value::Object(state) = state else { panic!("an object") };
        let event = changes.next(state, is_due)?;
        let (name, data) = event.strip_suffix("\n\n").unwrap().split_once('\n').unwrap();
        assert!(!data.contains('\n'), "a line break would end the data");
        let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        Some((name.strip_prefix("event: ").unwrap().to_owned(), data))
    }

    #[test]
    fn the_first_event_is_everything_and_later_ones_are_what_changed() {
        let mut changes = Changes::default();
        let whole = json!({"at": 1, "a": "line\nbreak", "b": []});
        assert_eq!(next(&mut changes, whole.clone(), false), Some(("state".to_owned(), whole)));
        assert_eq!(next(&mut changes, json!({"at": 2, "a": "line\nbreak", "b": []}), false), None);
        let change = next(&mut changes, json!({"at": 3, "a": "line\nbreak", "b": [1]}), false);
        assert_eq!(change, Some(("change".to_owned(), json!({"at": 3, "b": [1]}))));
        let life = next(&mut changes, json!({"at": 4, "a": "line\nbreak", "b": [1]}), true);
        assert_eq!(life, Some(("change".to_owned(), json!({"at": 4}))), "a sign of life");
    }
}
