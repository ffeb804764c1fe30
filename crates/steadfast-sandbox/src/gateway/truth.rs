use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// The ground truth: what really happened at the gateway, for tests and reports. Never on the wire.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct State {
    /// The gateway's clock, in nanoseconds since the sandbox was started.
    pub now_ns: u64,
    /// Every order that was applied, oldest first.
    pub orders: Vec<OrderTruth>,
    /// Orders that are still on their way to the book.
    pub pending_orders: usize,
    /// The latest requests, oldest first; older ones are dropped once there are a million.
    pub arrivals: Vec<ArrivalTruth>,
    /// The number of all requests.
    pub requests: u64,
    /// How many 429s each zone caused.
    pub refusals: BTreeMap<String, u64>,
    /// How many 429s were injected although the quota was not used up.
    pub injected_429s: u64,
    /// How often each fault struck.
    pub faults: BTreeMap<String, u64>,
    /// Results of logins.
    pub logins: Logins,
}

/// One order, with its true owner.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OrderTruth {
    /// The order id on the wire.
    pub order_id: String,
    /// The user's client id.
    pub owner: String,
    /// The test's name for its intent (header `x-test-intent`).
    pub intent: Option<String>,
    /// When it was applied, in nanoseconds since the sandbox was started.
    pub applied_ns: u64,
    /// The instrument.
    pub sym_id: String,
    /// The quantity.
    pub qty: String,
    /// The direction.
    pub side: &'static str,
    /// The price type.
    pub order_type: &'static str,
    /// The product.
    pub product: &'static str,
    /// The validity.
    pub validity: &'static str,
    /// The status now.
    pub status: &'static str,
    /// The leg.
    pub leg_type: &'static str,
}

/// One request.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArrivalTruth {
    /// When it arrived, in nanoseconds since the sandbox was started.
    pub at_ns: u64,
    /// The instant at which it counted for its zones.
    pub accounted_ns: u64,
    /// The method.
    pub method: String,
    /// The path below the base address.
    pub path: String,
    /// The status of the answer; 0 if a client sees none.
    pub status: u16,
    /// The zones that it falls under.
    pub zones: Vec<&'static str>,
    /// The zone that refused it, if one did.
    pub zone_refused: Option<&'static str>,
    /// The user's client id, once it is known.
    pub owner: Option<String>,
    /// The test's name for its intent.
    pub intent: Option<String>,
    /// The faults that struck it.
    pub faults: Vec<&'static str>,
}

/// Results of logins.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logins {
    /// Tokens issued on request.
    pub succeeded: u64,
    /// Logins answered with 401.
    pub failed: u64,
    /// Sessions that are alive.
    pub active_sessions: usize,
}

/// Collects the ground truth as requests come and go.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) arrivals: VecDeque<ArrivalTruth>,
    pub(crate) requests: u64,
    pub(crate) refusals: BTreeMap<String, u64>,
    pub(crate) injected_429s: u64,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    pub(crate) logins: Logins,
}

impl Record {
    /// Counts a fault that struck.
    pub(crate) fn count(&mut self, fault: &'static str) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub(crate) fn push(&mut self, arrival: ArrivalTruth, most: usize) {
        if let Some(zone) = arrival.zone_refused {
            *self.refusals.entry(zone.to_owned()).or_default() += 1;
        } else if arrival.status == 429 {
            self.injected_429s += 1;
        }
        for &fault in &arrival.faults {
            self.count(fault);
        }
        if self.arrivals.len() >= most {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(arrival);
    }
}
