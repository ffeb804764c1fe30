use steadfast::auth::{Cause, Summary};

use super::finding::Findings;
use crate::{probe::Probed, summary::recent_sessions};

/// A clock this far off makes one-time codes fail occasionally.
const SKEW_MS: i64 = 2_000;
/// A clock this far off makes them fail.
const FAR_MS: i64 = 30_000;

/// Judges how far this machine's clock is off the service's, and returns that, if the service tells the time.
pub(super) fn clock(probed: &Probed, findings: &mut Findings) -> Option<i64> {
    let Some(offset) = probed.offset_ms else {
        findings.doubtful("clock", "the service does not tell the time");
        return None;
    };
    let side = if offset < 0 { "ahead of" } else { "behind" };
    let text = format!("{} ms {side} the service's", offset.abs());
    match offset.abs() {
        far if far >= FAR_MS => findings.bad("clock", text),
        off if off >= SKEW_MS => findings.doubtful("clock", text),
        _ => findings.fine("clock", text),
    }
    Some(offset)
}

/// Lists why a stored token may be refused, the most likely cause first.
pub(super) fn causes(summary: &Summary, offset: Option<i64>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let opened = recent_sessions(summary);
    if opened >= 10 {
        causes.push(Cause::SessionEvicted { opened });
    }
    // The token was accepted before, so key, header and address were right.
    if summary.has_worked {
        causes.extend([Cause::Ended, Cause::AddressChanged]);
        return causes;
    }
    causes.extend([Cause::IpNotWhitelisted, Cause::ApiKey, Cause::Ended]);
    causes.extend(far(offset));
    causes.push(Cause::HeaderChanged);
    causes
}

/// Lists why a token of the environment may be refused, the most likely cause first.
pub(super) fn causes_of_given(offset: Option<i64>) -> Vec<Cause> {
    let mut causes = vec![Cause::Ended, Cause::IpNotWhitelisted, Cause::ApiKey];
    causes.extend(far(offset));
    causes
}

/// Returns the clock as a cause, if it is far off.
fn far(offset: Option<i64>) -> Option<Cause> {
    offset.filter(|offset| offset.abs() >= FAR_MS).map(|offset_ms| Cause::Clock { offset_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a clock that was ahead was called `-313 ms behind`.
    #[test]
    fn the_clock_is_ahead_or_behind_by_a_positive_time() {
        for (offset, told) in
            [(-313, "313 ms ahead of the service's"), (40_000, "40000 ms behind the service's")]
        {
            let mut findings = Findings::default();
            let probed = Probed { status: 401, offset_ms: Some(offset), is_of_sidecar: false };
            assert_eq!(clock(&probed, &mut findings), Some(offset));
            let said = findings.all()[0].to_string();
            assert!(said.ends_with(told), "{said}");
            let said = Cause::Clock { offset_ms: offset }.to_string();
            assert!(said.ends_with(told), "{said}");
        }
    }
}
