use std::{fmt, sync::Arc};

use steadfast_spec::{Form, changes_display};

use super::{request::IncomingRequest, truth::ArrivalTruth};

/// Takes one line for each request. Its `Debug` says only that there is one.
#[derive(Clone)]
pub(crate) struct Log(Arc<dyn Fn(&str) + Send + Sync>);

impl Log {
    pub(crate) fn new(take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    pub(crate) fn take(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

/// The parameters that are shown. Every other one may hold a secret.
const SHOWN: [&str; 24] = [
    "symId",
    "qty",
    "side",
    "type",
    "product",
    "validity",
    "limitPrice",
    "trigPrice",
    "orderId",
    "orderNo",
    "remarks",
    "discQty",
    "amo",
    "mktProt",
    "stopTrigPrice",
    "targetPrice",
    "trailingStopPrice",
    "fromProduct",
    "toProduct",
    "symDetails",
    "grant_type",
    "twoFaTyp",
    "interval",
    "version",
];

/// The parameters of which only the name is shown. The name of any other one may be a secret in the wrong place.
const NAMED: [&str; 7] = ["client_id", "client_secret", "code", "password", "twoFa", "redirect_uri", "state"];

/// The longest value and the longest segment of a path that are shown: no token is as short.
const LONGEST: usize = 30;

const MASK: &str = "***";

/// Returns a request's line: when it arrived, method, path and parameters, status, and why that one.
pub(crate) fn line(arrival: &ArrivalTruth, incoming: &IncomingRequest) -> String {
    let ms = arrival.at_ns / 1_000_000;
    let segments =
        arrival.path.split('/').map(|segment| if segment.len() > LONGEST { MASK } else { segment });
    let path = plain(&segments.collect::<Vec<_>>().join("/"));
    let mut words = vec![format!("{}.{:03}", ms / 1_000, ms % 1_000), plain(&arrival.method), path];

    let query = incoming.query.as_deref().unwrap_or_default().as_bytes();
    let body = incoming.body.as_deref().unwrap_or_default();
    for form in [query, body].into_iter().filter_map(|text| Form::parse(text).ok()) {
        words.extend(form.iter().map(|(name, value)| parameter(name, value)));
    }

    words.push("->".to_owned());
    words.push(match arrival.status {
        0 => "no answer".to_owned(),
        status => status.to_string(),
    });
    let facts = [
        ("owner", arrival.owner.as_deref()),
        ("intent", arrival.intent.as_deref()),
        ("zone", arrival.zone_refused),
    ];
    words.extend({ facts.iter() }.filter_map(|(name, value)| Some(format!("{name}={}", plain((*value)?)))));
    words.extend(arrival.faults.iter().map(|fault| format!("fault={fault}")));
    words.join(" ")
}

fn parameter(name: &str, value: &str) -> String {
    if SHOWN.contains(&name) && value.len() <= LONGEST {
        format!("{name}={}", plain(value))
    } else if SHOWN.contains(&name) || NAMED.contains(&name) {
        format!("{name}={MASK}")
    } else {
        format!("{MASK}={MASK}")
    }
}

/// Returns a foreign text as one word, without characters that control a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() || changes_display(c) { '\u{fffd}' } else { c }).collect()
}
