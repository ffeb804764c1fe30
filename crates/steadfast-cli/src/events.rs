//! Events of orders that change an earlier result: shown as they happen, counted, and kept beside the journal for
//! `steadfast orders unresolved`.

mod kept;
mod repeats;

use std::{collections::BTreeSet, path::Path};

use serde::{Deserialize, Serialize};
use steadfast::dedup::OrderEvent;

use self::repeats::MISSED;
pub(crate) use self::{
    kept::Kept,
    repeats::{Heard, ToldBefore},
};
use crate::{
    clock::{seconds, wall},
    readable::{identifier, readable},
    row_name::line_of,
};

/// Number of events of each kind. A person has to look at each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct EventCounts {
    pub(crate) late_orders: usize,
    pub(crate) conflicts: usize,
    pub(crate) refused_but_placed: usize,
    pub(crate) excess: usize,
    pub(crate) ack_not_listed: usize,
    /// Acknowledged orders that no list could be read for.
    pub(crate) ack_unconfirmed: usize,
    /// Orders whose rows had another result before.
    pub(crate) corrected: usize,
    /// `refusal_unconfirmed`, `may_be_doubled`, kinds that this version does not know, and events that were missed.
    pub(crate) other: usize,
}

/// Precedes the reason for which a row's order is in doubt.
pub(crate) const NOT_KNOWN: &str = "what became of this row's order is not known: ";

/// An event and its order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Seconds since the Unix epoch.
    pub(crate) at: u64,
    /// The kind: `late_order`, `conflict`, `refused_but_placed`, `excess`, `ack_not_listed`, `ack_unconfirmed`,
    /// `corrected`, or the library's name for a kind without a word here.
    pub(crate) event: String,
    /// The caller's name of the order, if the event has one.
    pub(crate) name: Option<String>,
    /// The order's number in the process that placed it.
    pub(crate) intent: Option<u64>,
    #[serde(rename = "orderId")]
    pub(crate) order_id: Option<String>,
    /// The event in words.
    pub(crate) msg: String,
    /// True if another row with the same order id is in doubt as well.
    #[serde(skip)]
    pub(crate) other: bool,
}

/// How an event is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It counts until a person has looked.
    Stands(Seen),
    /// It is printed as a note.
    Note(String),
    /// The order's own result reports it.
    Elsewhere,
}

impl Told {
    pub(crate) fn of(event: &OrderEvent) -> Self {
        let seen = |event: &str, intent: Option<u64>, order_id: &str, msg: String| {
            let (order_id, event) = (Some(order_id.to_owned()), event.to_owned());
            Seen { at: seconds(wall()), event, name: None, intent, order_id, msg, other: false }
        };
        let id = |order_id: &str| identifier(order_id).into_owned();
        match event {
            // Calls are dropped only when the run ends early; the journal then has the result.
            OrderEvent::Recovered { .. }
            | OrderEvent::Unresolved { .. }
            | OrderEvent::Absent { .. }
            | OrderEvent::PlacedUnheard { .. } => Self::Elsewhere,
            OrderEvent::LateDuplicate { intent, name, order_id, kept } => {
                let order_id = &id(order_id);
                let kept = kept.as_ref().map_or_else(
                    || "told to be unresolved or not there".to_owned(),
                    |kept| format!("told to be order {}", id(kept)),
                );
                let msg = format!("order {order_id} appeared late: its row was {kept}; look at both");
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                Self::Stands(Seen { name, ..seen("late_order", Some(intent.0), order_id, msg) })
            }
            OrderEvent::Excess { intent, order_id } => {
                let order_id = &id(order_id);
                let msg = format!(
                    "order {order_id} is one more than was acknowledged: it may be ours, by an answer that was lost; look at it"
                );
                Self::Stands(seen("excess", Some(intent.0), order_id, msg))
            }
            OrderEvent::RefusedButPlaced { intent, name, order_id, kept } => {
                let order_id = &id(order_id);
                let kept =
                    kept.as_ref().map(|kept| format!(", beside order {}", id(kept))).unwrap_or_default();
                let msg =
                    format!("order {order_id} was refused and is placed all the same{kept}; look at it");
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                Self::Stands(Seen { name, ..seen("refused_but_placed", Some(intent.0), order_id, msg) })
            }
            OrderEvent::Conflict { intent, name, other, order_id } => {
                let order_id = &id(order_id);
                let msg = match other {
                    Some(_) => {
                        format!("the service gave the identifier {order_id} to two orders: both are in doubt")
                    }
                    None => format!(
                        "the service gave this row the identifier of order {order_id}, which was there before: this row is \
                         in doubt"
                    ),
                };
                let (name, other) = (name.as_ref().map(|name| name.as_str().to_owned()), other.is_some());
                Self::Stands(Seen { name, other, ..seen("conflict", Some(intent.0), order_id, msg) })
            }
            OrderEvent::AckNotListed { intent, name, order_id } => {
                let order_id = &id(order_id);
                let msg = format!("order {order_id} was acknowledged and is in no list: its row is in doubt");
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                Self::Stands(Seen { name, ..seen("ack_not_listed", Some(intent.0), order_id, msg) })
            }
            OrderEvent::AckUnconfirmed { intent, name, order_id, candidates } => {
                let order_id = &id(order_id);
                let instead = if candidates.is_empty() {
                    String::new()
                } else {
                    format!(
                        "; it may be order {} instead: cancel none before you know",
                        candidates.iter().map(|order_id| id(order_id)).collect::<Vec<_>>().join(" or ")
                    )
                };
                let msg = format!(
                    "order {order_id} was acknowledged and no list that could be read shows it as it was sent: look whether it is \
                     placed{instead}"
                );
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                Self::Stands(Seen { name, ..seen("ack_unconfirmed", Some(intent.0), order_id, msg) })
            }
            OrderEvent::RefusalUnconfirmed { intent, name } => {
                let msg =
                    "the service refused this row, and no list has confirmed that: look whether it is placed";
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                let seen = seen("refusal_unconfirmed", Some(intent.0), "", msg.to_owned());
                Self::Stands(Seen { name, order_id: None, ..seen })
            }
            OrderEvent::MayBeDoubled { intent, name, kept } => {
                let kept =
                    kept.as_ref().map_or_else(|| "no order".to_owned(), |kept| format!("order {}", id(kept)));
                let msg = format!(
                    "the lists by which this row was sent again prove less now: beside {kept} there may be another"
                );
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                let seen = Seen { name, order_id: None, ..seen("may_be_doubled", Some(intent.0), "", msg) };
                Self::Stands(seen)
            }
            OrderEvent::AckMismatch { intent, name, order_id } => {
                let order_id = &id(order_id);
                let msg = format!(
                    "the list shows another order as {order_id} than was acknowledged: its row is in doubt"
                );
                let name = name.as_ref().map(|name| name.as_str().to_owned());
                Self::Stands(Seen { name, ..seen("conflict", Some(intent.0), order_id, msg) })
            }
            OrderEvent::ClockStepped { by, forward } => Self::Note(format!(
                "clocks differ: the machine's is {} min {} the time known so far, the service's or its own before; one of the two \
                 is wrong, and the trading day goes on as it was",
                by.as_secs() / 60,
                if *forward { "ahead of" } else { "behind" }
            )),
            OrderEvent::ListNotMonotone { order_id } => Self::Note(format!(
                "the order list no longer holds order {}, which it has shown: an order that it lacks proves nothing \
                 now",
                id(order_id)
            )),
            OrderEvent::Uncalibrated { order_id, .. } => Self::Note(format!(
                "the order list shows order {} in another form than it was sent in: orders in doubt are hard to recognise",
                id(order_id)
            )),
            OrderEvent::TagEcho { order_id, echo, .. } => Self::Note(format!(
                "the order list shows the tag of order {}: {}",
                id(order_id),
                echo.as_str()
            )),
            other => Self::unknown(&format!("{other:?}")),
        }
    }

    /// Describes an event of a kind that this version does not know, from its `Debug` text.
    fn unknown(written: &str) -> Self {
        let kind: String = written.chars().take_while(char::is_ascii_alphanumeric).collect();
        let order_id = field(written, "order_id").map(|id| identifier(id).into_owned());
        let name = field(written, "name").map(str::to_owned);
        let msg = readable(written).into_owned();
        let (event, intent) = (snake(&kind), None);
        Self::Stands(Seen { at: seconds(wall()), event, name, intent, order_id, msg, other: false })
    }

    /// Reports events that were missed.
    pub(crate) fn missed(count: u64) -> Self {
        let msg =
            format!("{count} events came faster than they were taken: compare the order list with the rows");
        let (event, name, intent, order_id) = (MISSED.to_owned(), None, None, None);
        Self::Stands(Seen { at: seconds(wall()), event, name, intent, order_id, msg, other: false })
    }
}

/// The orders whose earlier result from the service proved wrong. Their end is reported if the caller has a result
/// already.
#[derive(Debug, Default)]
pub(crate) struct Contradicted(BTreeSet<u64>);

impl Contradicted {
    /// Returns how to report an event, given those before it. `is_open` returns true for an order whose caller has no
    /// result yet.
    pub(crate) fn tell(&mut self, event: &OrderEvent, is_open: impl Fn(&str) -> bool) -> Told {
        let (intent, name, order_id, msg) = match event {
            OrderEvent::Conflict { intent, other, .. } => {
                self.0.extend([Some(intent), other.as_ref()].into_iter().flatten().map(|intent| intent.0));
                return Told::of(event);
            }
            OrderEvent::AckNotListed { intent, .. }
            | OrderEvent::AckMismatch { intent, .. }
            | OrderEvent::RefusalUnconfirmed { intent, .. }
            | OrderEvent::RefusedButPlaced { intent, .. } => {
                self.0.insert(intent.0);
                return Told::of(event);
            }
            OrderEvent::Recovered { intent, name, order_id } => {
                let order_id = identifier(order_id).into_owned();
                let msg = format!("the order of this row is {order_id}, whatever was told before");
                (intent, name, Some(order_id), msg)
            }
            OrderEvent::Unresolved { intent, name, unresolved } => {
                let candidates: Vec<_> = unresolved.candidates.iter().map(|id| identifier(id)).collect();
                let (reason, may_be) = (unresolved.reason.as_str(), candidates.join(", "));
                let may_be = if may_be.is_empty() { may_be } else { format!("; it may be {may_be}") };
                (intent, name, None, format!("{NOT_KNOWN}{reason}{may_be}"))
            }
            _ => return Told::of(event),
        };
        let name = name.as_ref().map(|name| name.as_str().to_owned());
        if !self.0.contains(&intent.0) || name.as_deref().is_some_and(is_open) {
            return Told::of(event);
        }
        let (event, intent) = ("corrected".to_owned(), Some(intent.0));
        Told::Stands(Seen { at: seconds(wall()), event, name, intent, order_id, msg, other: false })
    }
}

/// Returns the text of a field in an event's `Debug` output: the first quoted text after the field's name.
fn field<'a>(written: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = written.split_once(&format!(" {name}: "))?;
    let value = rest.split(", ").next()?;
    value.split('"').nth(1)
}

/// Turns `RefusedButPlaced` into `refused_but_placed`.
fn snake(kind: &str) -> String {
    let mut text = String::new();
    for c in kind.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

impl Seen {
    /// An event that was stored, and cannot be read any more.
    fn unreadable(file: &Path, line: usize) -> Self {
        let msg =
            format!("line {line} of {} is no event: look at the line", readable(&file.display().to_string()));
        let event = "unreadable".to_owned();
        Self { at: seconds(wall()), event, name: None, intent: None, order_id: None, msg, other: false }
    }

    /// Returns true if both say the same of the same order, whenever that was.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Self { at: other.at, other: other.other, ..self.clone() } == *other
    }

    /// Names the row, if the event has one, and says what happened.
    pub(crate) fn sentence(&self) -> String {
        let row = self.name.as_deref().and_then(line_of);
        let row = row.map_or_else(String::new, |line| format!("line {line}: "));
        format!("{row}{}: {}", self.event.replace('_', " "), self.msg)
    }
}

impl EventCounts {
    pub(crate) fn add(&mut self, seen: &Seen) {
        let count = match seen.event.as_str() {
            "late_order" => &mut self.late_orders,
            "conflict" => &mut self.conflicts,
            "refused_but_placed" => &mut self.refused_but_placed,
            "excess" => &mut self.excess,
            "ack_not_listed" => &mut self.ack_not_listed,
            "ack_unconfirmed" => &mut self.ack_unconfirmed,
            "corrected" => &mut self.corrected,
            _ => &mut self.other,
        };
        *count += 1;
    }

    /// Returns the number of events of all kinds.
    pub(crate) fn sum(&self) -> usize {
        let Self { late_orders, conflicts, refused_but_placed, excess, ack_not_listed, .. } = *self;
        let contradicted = late_orders + conflicts + refused_but_placed + excess + ack_not_listed;
        contradicted + self.ack_unconfirmed + self.corrected + self.other
    }
}

#[cfg(test)]
mod tests;
