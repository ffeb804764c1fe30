use std::{borrow::Cow, fmt};

use serde::Serialize;
use steadfast::{
    OrderRequest,
    dedup::{RecoveredOrder, Verdict},
};

use crate::{
    events::Seen,
    exit::Failed,
    readable::{identifier, readable},
    stdout::print_line,
};

/// The status of an order that the service refused (401, 429), as a list has confirmed.
pub(super) const NOT_EXECUTED: &str = "not executed";

/// An order that was in doubt, or an event that is not cleared.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    pub(super) intent: Option<u64>,
    pub(super) name: Option<&'a str>,
    #[serde(rename = "symId")]
    pub(super) sym_id: Option<&'a str>,
    pub(super) side: Option<&'static str>,
    pub(super) qty: Option<String>,
    /// `in doubt`, `recovered`, `not executed`, the reason why it is not resolved, the ruling of `orders rule` (`placed`,
    /// `not placed`), or the kind of an event, such as `late order`.
    pub(super) status: String,
    /// The status of the order in the list, if it was found there.
    pub(super) listed: Option<String>,
    #[serde(rename = "orderId")]
    pub(super) order_id: Option<Cow<'a, str>>,
    pub(super) candidates: Vec<Cow<'a, str>>,
    /// The text of an event.
    pub(super) msg: Option<&'a str>,
    /// Why an order is still in doubt, and what to do about it.
    pub(super) next: Option<String>,
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.intent) {
            (Some(name), _) => f.write_str(name)?,
            (None, Some(intent)) => write!(f, "#{intent}")?,
            (None, None) => f.write_str("-")?,
        }
        if let (Some(side), Some(qty), Some(sym_id)) = (self.side, &self.qty, self.sym_id) {
            write!(f, " {side} {qty} {sym_id}")?;
        }
        write!(f, " {} {}", self.order_id.as_deref().unwrap_or("-"), self.status)?;
        if let Some(listed) = &self.listed {
            write!(f, "; the list shows it as {listed}")?;
        }
        self.candidates.iter().try_for_each(|candidate| write!(f, " {candidate}"))?;
        self.msg.or(self.next.as_deref()).map_or(Ok(()), |text| write!(f, ": {text}"))
    }
}

impl<'a> Row<'a> {
    pub(super) fn of(order: &'a RecoveredOrder) -> Self {
        let request: &OrderRequest = &order.order;
        let (status, order_id, candidates) = match &order.verdict {
            Verdict::Acknowledged { order_id } => {
                ("acknowledged".to_owned(), Some(order_id.as_str()), &[][..])
            }
            Verdict::Recovered { order_id, .. } => ("recovered".to_owned(), Some(order_id.as_str()), &[][..]),
            Verdict::Unresolved(unresolved) => {
                (unresolved.reason.to_string(), None, unresolved.candidates.as_slice())
            }
            Verdict::NotPlaced => (NOT_EXECUTED.to_owned(), None, &[][..]),
            _ => ("in doubt".to_owned(), None, &[][..]),
        };
        let listed = match &order.verdict {
            Verdict::Recovered { status, .. } => {
                status.as_deref().map(|status| readable(status).into_owned())
            }
            _ => None,
        };
        Self {
            intent: Some(order.intent.0),
            name: order.name.as_ref().map(|name| name.as_str()),
            sym_id: Some(request.sym_id().as_str()),
            side: Some(request.side().as_str()),
            qty: Some(request.qty().to_string()),
            status,
            listed,
            order_id: order_id.map(identifier),
            candidates: candidates.iter().map(|id| identifier(id)).collect(),
            msg: None,
            next: None,
        }
    }

    pub(super) fn of_event(seen: &'a Seen) -> Self {
        Self {
            intent: seen.intent,
            name: seen.name.as_deref(),
            sym_id: None,
            side: None,
            qty: None,
            status: seen.event.replace('_', " "),
            listed: None,
            order_id: seen.order_id.as_deref().map(identifier),
            candidates: Vec::new(),
            msg: Some(&seen.msg),
            next: None,
        }
    }
}

/// Prints rows, as lines or as one JSON array.
pub(super) fn show(rows: &[Row<'_>], json: bool) -> Result<(), Failed> {
    if json {
        print_line(serde_json::to_string(rows).map_err(Failed::error)?);
    } else {
        rows.iter().for_each(print_line);
    }
    Ok(())
}
