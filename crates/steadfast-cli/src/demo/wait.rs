use std::{collections::HashMap, time::Duration};

use steadfast_call::Lane;

use super::session::Session;

/// How long calls waited at their client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Vec<(Lane, f64)>);

/// The end point of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The first byte of the call's first request, whatever its answer.
    Sent,
    /// The call's first request within the quota.
    Admitted,
}

impl Waits {
    pub(crate) fn of(session: &Session, until: Until) -> Self {
        let mut first: HashMap<&str, u64> = HashMap::new();
        let counts = |status: u16| until == Until::Sent || status != 429;
        for arrival in session.truth.arrivals.iter().filter(|arrival| counts(arrival.status)) {
            if let Some(name) = &arrival.intent {
                first.entry(name).or_insert(arrival.at_ns);
            }
        }
        let waits = session.calls.iter().filter_map(|call| {
            let arrived = Duration::from_nanos(*first.get(call.name.as_str())?);
            // A call is noted just before it is made, so a wait is never negative.
            Some((call.lane, arrived.saturating_sub(call.at).as_secs_f64() * 1_000.0))
        });
        Self(waits.collect())
    }

    /// Returns the waits of one lane, in milliseconds, shortest first.
    pub(crate) fn of_lane(&self, lane: Lane) -> Vec<f64> {
        let mut waits: Vec<f64> =
            self.0.iter().filter(|(of, _)| *of == lane).map(|(_, wait)| *wait).collect();
        waits.sort_by(f64::total_cmp);
        waits
    }
}
