//! The news about orders, for the operator.

use steadfast::dedup::OrderEvent;
use tokio::sync::{
    broadcast::{Receiver, error::RecvError},
    oneshot,
};

use crate::{
    events::{Contradicted, Kept, Told},
    exit::print_note,
    readable::identifier,
};

/// Prints the news about orders, and writes down what a person has to look at, until `enough` and no news is left.
pub(super) async fn tell(
    mut events: Receiver<OrderEvent>,
    kept: Option<Kept>,
    mut enough: oneshot::Receiver<()>,
) {
    let mut contradicted = Contradicted::default();
    loop {
        let event = tokio::select! {
            biased;
            event = events.recv() => event,
            _ = &mut enough => return,
        };
        let told = match event {
            Ok(event) => match contradicted.tell(&event, |_| false) {
                Told::Elsewhere => end_without_caller(&event).map_or(Told::Elsewhere, Told::Note),
                told => told,
            },
            Err(RecvError::Lagged(missed)) => Told::missed(missed),
            Err(RecvError::Closed) => return,
        };
        match told {
            Told::Stands(seen) => {
                print_note(seen.sentence());
                if let Some(Err(error)) = kept.as_ref().map(|kept| kept.keep(&seen)) {
                    print_note(format_args!("steadfast: event cannot be written down: {error}"));
                }
            }
            Told::Note(note) => print_note(note),
            Told::Elsewhere => {}
        }
    }
}

/// Describes the end of an order of which no caller may have been told, because callers can go at any time.
fn end_without_caller(event: &OrderEvent) -> Option<String> {
    let (name, end) = match event {
        OrderEvent::PlacedUnheard { name, order_id, .. } => {
            (name, format!("was placed as {}; its caller has gone", identifier(order_id)))
        }
        OrderEvent::Unresolved { name, unresolved, .. } => {
            (name, format!("is in doubt: {}", unresolved.reason))
        }
        _ => return None,
    };
    let name = name.as_ref().map_or("without a name", |name| name.as_str());
    Some(format!("steadfast: order {name} {end}"))
}

#[cfg(test)]
mod tests {
    use steadfast::{dedup::IntentNo, ext::IntentId};
    use tokio::sync::broadcast;

    use super::*;

    #[test]
    fn an_order_whose_caller_has_gone_is_told_to_the_operator() {
        let (intent, name, order_id) = (IntentNo(0), Some(IntentId::new("k7")), "240101000000001".to_owned());
        let told = end_without_caller(&OrderEvent::PlacedUnheard { intent, name, order_id });
        assert_eq!(
            told.as_deref(),
            Some("steadfast: order k7 was placed as 240101000000001; its caller has gone")
        );
        let heard = OrderEvent::Recovered { intent, name: None, order_id: "7".to_owned() };
        assert_eq!(end_without_caller(&heard), None);
    }

    #[tokio::test]
    async fn the_last_news_is_written_down_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::beside(&folder.path().join("orders.journal"));
        let (events, news) = broadcast::channel(8);
        for order_id in ["1", "2"] {
            events.send(OrderEvent::Excess { intent: IntentNo(0), order_id: order_id.to_owned() }).unwrap();
        }
        let (enough, last) = oneshot::channel();
        enough.send(()).unwrap();
        tell(news, Some(kept), last).await;
        let kept = Kept::beside(&folder.path().join("orders.journal"));
        assert_eq!(kept.read().unwrap().len(), 2);
    }
}
