/// What a request asks for.
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
    /// It arrives much later, whether or not somebody still waits for it.
    Slow,
}

/// Something that goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Empty for none.
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// What is put into the gateway for it.
    pub(crate) inject: &'static [&'static str],
    /// True if the client cannot know what became of an order that met it.
    pub(crate) in_doubt: bool,
    /// True if the order list it strikes lacks orders.
    pub(crate) hides_orders: bool,
}

impl Fault {
    pub(crate) const NONE: Self =
        Self { name: "", way: Way::Through, inject: &[], in_doubt: false, hides_orders: false };

    const fn doubt(name: &'static str, way: Way, inject: &'static [&'static str]) -> Self {
        Self { name, way, inject, in_doubt: true, ..Self::NONE }
    }

    const fn definite(name: &'static str, way: Way, inject: &'static [&'static str]) -> Self {
        Self { name, way, inject, ..Self::NONE }
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

/// What can happen to an order. The index is the choice; new ones go to the end, so that old tapes stay good.
const PLACE: [Fault; 38] = {
    let mut all = [Fault::NONE; 38];
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
    all
};

const LIST: [Fault; 16] = [
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

/// Ways in which every list of a session is written, beside the plain one.
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

/// All that can happen to a request of this kind; 0 is nothing.
pub(crate) const fn catalogue(kind: Kind) -> &'static [Fault] {
    match kind {
        Kind::Place => &PLACE,
        Kind::List => &LIST,
        Kind::Cancel => &CANCEL,
        Kind::Other => &[Fault::NONE],
    }
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
    fn the_plain_choice_is_no_fault() {
        for kind in [Kind::Place, Kind::List, Kind::Cancel, Kind::Other] {
            assert_eq!(catalogue(kind)[0], Fault::NONE);
        }
        assert!(catalogue(Kind::Place)[1..].iter().all(|fault| !fault.name.is_empty()));
    }
}
