//! Names and numbers for tables and plots.

use steadfast_sandbox::enforce::Kind;
use steadfast_spec::Zone;

use super::{contender::Contender, tally::Tally};
use crate::sim::network::{Nanos, S};

/// Returns a gateway's short name.
pub(super) fn short(gateway: Kind) -> &'static str {
    match gateway {
        Kind::FixedWindow { .. } => "fixed",
        Kind::FirstHit => "1st hit",
        Kind::SlidingLog => "log",
        Kind::TokenBucket => "bucket",
        Kind::WholeSecond => "whole s",
        Kind::SlidingCounter { .. } => "counter",
        Kind::CountingRejects { .. } => "+rejects",
        Kind::LeakyBucket { burst: 0 } => "leaky 0",
        _ => "leaky 4",
    }
}

/// Returns client and setup in one name.
pub(super) fn named(contender: Contender) -> String {
    format!("{} {}", contender.client(), contender.profile()).trim_end().to_owned()
}

/// Returns the limits of a zone.
pub(super) fn limits(zone: Zone) -> &'static str {
    if zone == Zone::GENERAL { "10 in 1 s and 400 in 1 min" } else { "10 in 1 s" }
}

/// Returns 429s in a thousand sends; "0" only if there was none.
pub(super) fn per_thousand(tally: &Tally) -> String {
    let rate = 1_000.0 * tally.http_429 as f64 / tally.sends.max(1) as f64;
    match rate {
        _ if tally.sends == 0 => "-".to_owned(),
        _ if tally.http_429 == 0 => "0".to_owned(),
        _ if rate < 0.01 => "<0.01".to_owned(),
        _ if rate < 1.0 => format!("{rate:.2}"),
        _ if rate < 10.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

/// Returns seconds with the digits that matter.
pub(super) fn seconds(time: Nanos) -> String {
    let seconds = time as f64 / S as f64;
    if seconds >= 10.0 { format!("{seconds:.1}") } else { format!("{seconds:.3}") }
}

/// Returns a number in groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    digits.char_indices().fold(String::new(), |mut text, (index, digit)| {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_from_the_end() {
        assert_eq!(["7", "1,000", "12,345,678"], [7, 1_000, 12_345_678].map(grouped));
    }

    #[test]
    fn a_rate_is_nought_only_if_nothing_was_refused() {
        let rate = |http_429, sends| per_thousand(&Tally { sends, http_429, ..Tally::default() });
        assert_eq!(rate(0, 5), "0");
        assert_eq!(rate(1, 10_000_000), "<0.01");
        assert_eq!(rate(1, 2_000), "0.50");
        assert_eq!(rate(96, 1_000), "96");
    }
}
