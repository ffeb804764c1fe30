//! Events in words.

use steadfast::{dedup::OrderEvent, ext::IntentId};

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Note,
    Warning,
    /// A person has to look.
    Alarm,
}

impl Level {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Alarm => "alarm",
        }
    }
}

/// Says what an event means for a person.
pub(crate) fn of(event: &OrderEvent) -> (Level, String) {
    match event {
        OrderEvent::Recovered { order_id, .. } => {
            (Level::Note, format!("order in doubt was found: {order_id}"))
        }
        OrderEvent::Unresolved { unresolved, .. } => {
            let reason = unresolved.reason.as_str().replace('_', " ");
            let may_be = match unresolved.candidates.as_slice() {
                [] => String::new(),
                candidates => format!("; it may be {}", candidates.join(" or ")),
            };
            (Level::Alarm, format!("order could not be resolved: {reason}{may_be}; look for it"))
        }
        OrderEvent::Absent { .. } => {
            (Level::Note, "order in doubt was not placed; it may be sent again".to_owned())
        }
        OrderEvent::LateDuplicate { order_id, kept, .. } => {
            let told = match kept {
                Some(kept) => format!("its caller was told of {kept}"),
                None => "its caller was told that it is in doubt or not there".to_owned(),
            };
            (Level::Alarm, format!("order {order_id} appeared late: {told}; look at both"))
        }
        OrderEvent::MayBeDoubled { kept, .. } => {
            let beside = kept.as_ref().map_or_else(String::new, |kept| format!(" beside {kept}"));
            (
                Level::Alarm,
                format!("order was sent again by lists that prove less now: there may be another{beside}"),
            )
        }
        OrderEvent::RefusedButPlaced { order_id, .. } => {
            (Level::Alarm, format!("order {order_id} was refused and is placed all the same; look at it"))
        }
        OrderEvent::RefusalUnconfirmed { .. } => (
            Level::Alarm,
            "order was refused, and no list has confirmed that: look whether it is placed".to_owned(),
        ),
        OrderEvent::AckUnconfirmed { order_id, .. } => (
            Level::Alarm,
            format!("order {order_id} was acknowledged, and no list has shown it: look for it"),
        ),
        OrderEvent::PlacedUnheard { order_id, .. } => {
            (Level::Warning, format!("order {order_id} was placed, and its caller had gone"))
        }
        OrderEvent::TagEcho { echo, .. } => {
            (Level::Note, format!("lists show the tags of orders: {}", echo.as_str()))
        }
        OrderEvent::Excess { order_id, .. } => {
            (Level::Alarm, format!("order {order_id} is one more than was asked for; look at it"))
        }
        OrderEvent::Conflict { order_id, other, .. } => match other {
            Some(_) => {
                (Level::Alarm, format!("the service gave {order_id} to two orders: both are in doubt"))
            }
            None => (
                Level::Alarm,
                format!("the service gave the id of an older order, {order_id}: this one is in doubt"),
            ),
        },
        OrderEvent::AckNotListed { order_id, .. } => {
            (Level::Alarm, format!("order {order_id} was acknowledged and is in no list: it is in doubt"))
        }
        OrderEvent::AckMismatch { order_id, .. } => (
            Level::Alarm,
            format!("the list shows another order as {order_id}: the acknowledged one is in doubt"),
        ),
        OrderEvent::ListNotMonotone { order_id } => (
            Level::Warning,
            format!("the list lacks order {order_id}, which it has shown: absence proves nothing now"),
        ),
        OrderEvent::Uncalibrated { order_id, .. } => {
            (Level::Warning, format!("the list shows order {order_id} in another form than it was sent in"))
        }
        OrderEvent::ClockStepped { by, forward } => {
            let (by, side) = (by.as_secs() / 60, if *forward { "ahead of" } else { "behind" });
            let told = format!(
                "clocks differ: the machine's is {by} min {side} the time known so far, the service's or its own before; one of \
                 the two is wrong, and the trading day goes on as it was"
            );
            (Level::Warning, told)
        }
        // A kind that this version does not know must not pass unseen.
        other => (Level::Alarm, format!("{other:?}")),
    }
}

/// Returns the caller's name for the order of an event.
pub(crate) fn name_of(event: &OrderEvent) -> Option<&IntentId> {
    match event {
        OrderEvent::Recovered { name, .. }
        | OrderEvent::Unresolved { name, .. }
        | OrderEvent::Absent { name, .. }
        | OrderEvent::LateDuplicate { name, .. }
        | OrderEvent::MayBeDoubled { name, .. }
        | OrderEvent::RefusedButPlaced { name, .. }
        | OrderEvent::RefusalUnconfirmed { name, .. }
        | OrderEvent::AckUnconfirmed { name, .. }
        | OrderEvent::PlacedUnheard { name, .. }
        | OrderEvent::TagEcho { name, .. }
        | OrderEvent::Conflict { name, .. }
        | OrderEvent::AckNotListed { name, .. }
        | OrderEvent::AckMismatch { name, .. }
        | OrderEvent::Uncalibrated { name, .. } => name.as_ref(),
        _ => None,
    }
}
