//! The calls of the last two minutes.

use std::collections::{BTreeMap, VecDeque};

use super::{
    state::{Calls as Shown, EndpointCalls, Refused, Word},
    strips::SAMPLES,
};

/// How long a call counts, in milliseconds.
const SPAN_MS: u64 = SAMPLES as u64 * 1_000;
/// The most calls that are kept. Beyond some 130 a second the figures cover less than two minutes.
const MOST: usize = 16 * 1024;

/// One call that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) endpoint: &'static str,
    pub(crate) end: End,
    pub(crate) is_repeated: bool,
    pub(crate) took_us: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Accepted,
    Rejected,
    NotExecuted,
    NotSent,
    Unknown,
    /// Its caller went away.
    Dropped,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// With the time since the start at which each ended, the oldest first.
    ended: VecDeque<(u64, Call)>,
    refused: BTreeMap<&'static str, u64>,
}

impl Calls {
    pub(crate) fn push(&mut self, ran: u64, call: Call) {
        if self.ended.len() == MOST {
            self.ended.pop_front();
        }
        self.ended.push_back((ran, call));
    }

    pub(crate) fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }

    /// Forgets what is older than the span.
    pub(crate) fn forget(&mut self, ran: u64) {
        let old = self.ended.partition_point(|(ended, _)| ended + SPAN_MS <= ran);
        self.ended.drain(..old);
    }

    /// Returns the figures `ran` milliseconds after the start.
    pub(crate) fn state(&self, ran: u64) -> Shown {
        let (mut all, mut failed) = (vec![0; SAMPLES], vec![0; SAMPLES]);
        let mut endpoints: BTreeMap<&str, (EndpointCalls, Vec<u64>)> = BTreeMap::new();
        let recent = self.ended.iter().filter(|(ended, _)| ended + SPAN_MS > ran);
        for (ended, call) in recent {
            let ago = usize::try_from(ran.saturating_sub(*ended) / 1_000).unwrap_or(SAMPLES);
            if let Some(second) = (SAMPLES - 1).checked_sub(ago) {
                all[second] += 1;
                failed[second] += u32::from(call.end != End::Accepted);
            }
            let (figures, times) =
                endpoints.entry(call.endpoint).or_insert_with(|| (none_of(call.endpoint), Vec::new()));
            figures.add(call);
            times.push(call.took_us);
        }
        let mut endpoints: Vec<_> = endpoints
            .into_values()
            .map(|(mut figures, mut times)| {
                times.sort_unstable();
                (figures.p50_us, figures.p99_us) = (quantile(&times, 50), quantile(&times, 99));
                figures
            })
            .collect();
        endpoints.sort_by_key(|figures| std::cmp::Reverse(figures.count));
        let refused = self.refused.iter();
        Shown {
            span_ms: self.span(ran),
            all,
            failed,
            endpoints,
            refused: refused
                .map(|(reason, count)| Refused { reason: Word::Borrowed(reason), count: *count })
                .collect(),
        }
    }

    /// Returns the time that the figures cover.
    fn span(&self, ran: u64) -> u64 {
        match self.ended.front() {
            Some((oldest, _)) if self.ended.len() == MOST => SPAN_MS.min(ran.saturating_sub(*oldest)),
            _ => SPAN_MS.min(ran),
        }
        .max(1_000)
    }
}

impl EndpointCalls {
    fn add(&mut self, call: &Call) {
        self.count += 1;
        self.repeated += u32::from(call.is_repeated);
        *match call.end {
            End::Accepted => &mut self.accepted,
            End::Rejected => &mut self.rejected,
            End::NotExecuted => &mut self.not_executed,
            End::NotSent => &mut self.not_sent,
            End::Unknown => &mut self.unknown,
            End::Dropped => &mut self.dropped,
        } += 1;
    }
}

fn none_of(endpoint: &'static str) -> EndpointCalls {
    EndpointCalls {
        endpoint: Word::Borrowed(endpoint),
        count: 0,
        accepted: 0,
        rejected: 0,
        not_executed: 0,
        not_sent: 0,
        unknown: 0,
        dropped: 0,
        repeated: 0,
        p50_us: 0,
        p99_us: 0,
    }
}

/// Returns the smallest time that so many percent of the calls did not exceed.
fn quantile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}
