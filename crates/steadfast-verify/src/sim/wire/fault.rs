use crate::sim::axes::{Axes, Axis};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Place,
    List,
    Cancel,
    Other,
}

/// How far a request and its answer get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// There and back.
    Through,
    /// No connection is made.
    Refused,
    /// It leaves and never arrives.
    Lost,
    /// It arrives, and its answer does not.
    AnswerLost,
    /// It arrives much later, even if the client no longer waits.
    Slow,
}

/// A fault of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Empty for none.
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// The faults that are injected into the gateway for it.
    pub(crate) inject: &'static [&'static str],
    /// True if the client cannot know the end of an order that met it.
    pub(crate) in_doubt: bool,
    /// True if the affected list lacks orders.
    pub(crate) hides_orders: bool,
    /// The axis that it needs.
    pub(crate) axis: Option<Axis>,
}

impl Fault {
    pub(crate) const NONE: Self =
        Self { name: "", way: Way::Through, inject: &[], in_doubt: false, hides_orders: false, axis: None };

    const fn doubt(name: &'static str, way: Way, inject: &'static [&'static str]) -> Self {
        Self { name, way, inject, in_doubt: true, ..Self::NONE }
    }

    const fn definite(name: &'static str, way: Way, inject: &'static [&'static str]) -> Self {
        Self { name, way, inject, ..Self::NONE }
    }

    const fn intermediary(name: &'static str, _: Way, inject: &'static [&'static str]) -> Self {
        Self::new(Axis::Intermediaries, name, inject)
    }

    const fn of_list(axis: Axis, name: &'static str, inject: &'static [&'static str]) -> Self {
        Self { axis: Some(axis), ..Self::definite(name, Way::Through, inject) }
    }

    /// Creates a fault of an axis, whose end the client cannot know.
    const fn new(axis: Axis, name: &'static str, inject: &'static [&'static str]) -> Self {
        Self { axis: Some(axis), ..Self::doubt(name, Way::Through, inject) }
    }

    const fn hiding(name: &'static str, inject: &'static [&'static str]) -> Self {
        Self { name, inject, hides_orders: true, ..Self::NONE }
    }
}

macro_rules! gateway {
    ($make:ident: $($name:literal),+ $(,)?) => {
        [$(Fault::$make($name, Way::Through, &[$name])),+]
    };
}

const IN_DOUBT: [Fault; 23] = gateway!(doubt:
    "placement.504-applied", "placement.504-not-applied", "placement.504-late",
    "placement.502-applied", "placement.502-not-applied", "placement.502-late",
    "placement.500-applied", "placement.500-not-applied", "placement.500-late",
    "placement.503-applied", "placement.503-not-applied", "placement.503-late",
    "placement.400-internal-applied", "placement.400-internal-not-applied", "placement.400-internal-late",
    "placement.200-truncated", "placement.200-no-order-id", "placement.200-error",
    "placement.reset-applied", "placement.reset-not-applied",
    "connection.reset-before", "connection.reset-after", "connection.reset-mid-body",
);

/// The faults of an order. The index is the choice; append new ones at the end, so that old tapes stay valid.
const PLACE: [Fault; 63] = {
    let mut all = [Fault::NONE; 63];
    let mut index = 0;
    while index < IN_DOUBT.len() {
        all[index + 1] = IN_DOUBT[index];
        index += 1;
    }
    all[24] = Fault::doubt("reset-late", Way::Through, &["placement.504-late", "connection.reset-after"]);
    all[25] = Fault::doubt("wire.request-lost", Way::Lost, &[]);
    all[26] = Fault::doubt("wire.answer-lost", Way::AnswerLost, &[]);
    all[27] = Fault::doubt("wire.slow", Way::Slow, &[]);
    all[28] = Fault::definite("wire.refused", Way::Refused, &[]);
    all[29] = Fault::definite("quota.storm", Way::Through, &["quota.storm"]);
    all[30] = Fault::definite("quota.storm-retry-after", Way::Through, &["quota.storm-retry-after"]);
    all[31] = Fault::definite("auth.token-revoked", Way::Through, &["auth.token-revoked"]);
    all[32] = Fault::definite("placement.double-forward", Way::Through, &["placement.double-forward"]);
    all[33] = Fault::doubt("placement.400-unknown-applied", Way::Through, &["placement.400-unknown-applied"]);
    all[34] = Fault::doubt(
        "placement.400-unknown-not-applied",
        Way::Through,
        &["placement.400-unknown-not-applied"],
    );
    all[35] = Fault::doubt("answer.empty", Way::Through, &["answer.empty"]);
    all[36] = Fault::doubt("answer.html-502", Way::Through, &["answer.html-502"]);
    all[37] = Fault::doubt("answer.s-unknown", Way::Through, &["answer.s-unknown"]);
    let mut index = 0;
    while index < INTERMEDIARIES.len() {
        all[index + 38] = INTERMEDIARIES[index];
        index += 1;
    }
    let refusals = Axis::PlacedRefusals;
    all[50] = Fault::new(refusals, "placement.401-applied", &["placement.401-applied"]);
    all[51] = Fault::new(refusals, "placement.403-applied", &["placement.403-applied"]);
    all[52] = Fault::new(refusals, "placement.429-applied", &["placement.429-applied"]);
    let stray = Axis::StrayAnswers;
    all[53] = Fault::new(stray, "placement.repeated-id-applied", &["placement.repeated-id-applied"]);
    all[54] = Fault::new(stray, "placement.repeated-id-not-applied", &["placement.repeated-id-not-applied"]);
    all[55] = Fault {
        axis: Some(Axis::Quotas),
        ..Fault::definite("quota.lowered", Way::Through, &["quota.lowered"])
    };
    let mut index = 0;
    while index < FIREWALLS.len() {
        all[index + 56] = FIREWALLS[index];
        index += 1;
    }
    all[61] = Fault::new(stray, "placement.invented-id-applied", &["placement.invented-id-applied"]);
    all[62] = Fault::new(stray, "placement.invented-id-not-applied", &["placement.invented-id-not-applied"]);
    all
};

const INTERMEDIARIES: [Fault; 12] = gateway!(intermediary:
    "placement.proxy-502-applied", "placement.proxy-502-not-applied", "placement.proxy-502-late",
    "placement.proxy-503-applied", "placement.proxy-503-not-applied", "placement.proxy-503-late",
    "placement.proxy-504-applied", "placement.proxy-504-not-applied", "placement.proxy-504-late",
    "placement.proxy-520-applied", "placement.proxy-520-not-applied", "placement.proxy-520-late",
);

/// Pages in the place of the gateway's refusals.
const FIREWALLS: [Fault; 5] = gateway!(intermediary:
    "placement.proxy-401-applied", "placement.proxy-403-applied", "placement.proxy-403-not-applied",
    "placement.proxy-404-applied", "placement.proxy-429-applied",
);

const LIST: [Fault; 20] = [
    Fault::NONE,
    Fault::definite("list.504", Way::Through, &["list.504"]),
    Fault::definite("list.429", Way::Through, &["list.429"]),
    Fault::definite("list.truncated", Way::Through, &["list.truncated"]),
    Fault::definite("list.stale", Way::Through, &["list.stale"]),
    Fault::definite("connection.reset-after", Way::Through, &["connection.reset-after"]),
    Fault::definite("wire.answer-lost", Way::AnswerLost, &[]),
    Fault::definite("wire.refused", Way::Refused, &[]),
    Fault::hiding("list.empty", &["list.empty"]),
    Fault::hiding("list.partial", &["list.partial"]),
    Fault::hiding("list.open-only", &["list.open-only"]),
    Fault::definite("list.401", Way::Through, &["list.401"]),
    Fault::definite("list.403", Way::Through, &["list.403"]),
    Fault::definite("list.500", Way::Through, &["list.500"]),
    Fault::definite("list.502", Way::Through, &["list.502"]),
    Fault::definite("list.503", Way::Through, &["list.503"]),
    Fault::of_list(Axis::LargeLists, "list.huge-bare", &["list.huge-bare"]),
    Fault::of_list(Axis::CachedLists, "list.cached-age", &["list.cached-age"]),
    Fault::of_list(Axis::CachedLists, "list.cached-hit", &["list.cached-hit"]),
    Fault::of_list(Axis::CachedLists, "list.cached-unless-asked", &["list.cached-unless-asked"]),
];

const CANCEL: [Fault; 7] = [
    Fault::NONE,
    Fault::definite("connection.reset-before", Way::Through, &["connection.reset-before"]),
    Fault::definite("connection.reset-after", Way::Through, &["connection.reset-after"]),
    Fault::definite("connection.reset-mid-body", Way::Through, &["connection.reset-mid-body"]),
    Fault::definite("wire.answer-lost", Way::AnswerLost, &[]),
    Fault::definite("wire.request-lost", Way::Lost, &[]),
    Fault::definite("quota.storm", Way::Through, &["quota.storm"]),
];

/// How every list of a session is written, beside the plain way.
pub(crate) const FORMS: [Fault; 8] = [
    Fault::NONE,
    Fault::definite("list.numeric-ids", Way::Through, &["list.numeric-ids"]),
    Fault::definite("list.prices-reformatted", Way::Through, &["list.prices-reformatted"]),
    Fault::definite("list.missing-price", Way::Through, &["list.missing-price"]),
    Fault::definite("list.missing-leg-type", Way::Through, &["list.missing-leg-type"]),
    Fault::definite("list.unknown-enums", Way::Through, &["list.unknown-enums"]),
    Fault::definite("list.duplicated-ids", Way::Through, &["list.duplicated-ids"]),
    Fault::definite("list.market-as-limit", Way::Through, &["list.market-as-limit"]),
];

/// Returns all faults of a kind of request; 0 is none.
pub(crate) const fn catalogue(kind: Kind) -> &'static [Fault] {
    match kind {
        Kind::Place => &PLACE,
        Kind::List => &LIST,
        Kind::Cancel => &CANCEL,
        Kind::Other => &[Fault::NONE],
    }
}

/// Returns the faults in a world with these axes. Faults behind the last allowed one are not offered, so a world
/// without axes keeps its old choices.
pub(crate) fn drawn(kind: Kind, axes: Axes) -> &'static [Fault] {
    let all = catalogue(kind);
    let last = all.iter().rposition(|fault| axes.admit(fault.axis)).unwrap_or_default();
    &all[..=last]
}

#[cfg(test)]
mod tests {
    use steadfast_sandbox::Fault as Injected;

    use super::*;

    #[test]
    fn the_gateway_knows_every_fault_that_is_put_into_it() {
        for fault in [Kind::Place, Kind::List, Kind::Cancel].into_iter().flat_map(catalogue).chain(&FORMS) {
            for name in fault.inject {
                assert!(name.parse::<Injected>().is_ok(), "{name}");
            }
            assert_eq!(fault.name.is_empty(), *fault == Fault::NONE);
        }
    }

    #[test]
    fn a_fault_is_of_the_axis_that_the_sandboxs_is_of() {
        for fault in [Kind::Place, Kind::List, Kind::Cancel].into_iter().flat_map(catalogue) {
            let axes: Vec<_> = fault.inject.iter().map(|name| Axis::of(name.parse().unwrap())).collect();
            assert!(axes.iter().all(|axis| *axis == fault.axis), "{}", fault.name);
        }
        assert_eq!(drawn(Kind::Place, Axes::NONE).len(), 38);
        assert_eq!(drawn(Kind::List, Axes::NONE).len(), 16);
        assert_eq!(drawn(Kind::Place, Axes::ALL).len(), PLACE.len());
    }

    #[test]
    fn the_plain_choice_is_no_fault() {
        for kind in [Kind::Place, Kind::List, Kind::Cancel, Kind::Other] {
            assert_eq!(catalogue(kind)[0], Fault::NONE);
        }
        assert!(catalogue(Kind::Place)[1..].iter().all(|fault| !fault.name.is_empty()));
    }
}
