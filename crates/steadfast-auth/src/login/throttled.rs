use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

/// The logins in a row that were answered with 429, over all processes.
///
/// The service did not look at their passwords, so they spend no budget. Only the wait for the next one grows, to five
/// minutes, because the limit may merely be busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Throttled {
    pub(crate) count: u32,
    /// When the last of them was answered.
    pub(crate) at: Duration,
    /// How long the next one waits from then on.
    pub(crate) wait: Duration,
}

impl Throttled {
    /// The longest wait, unless the service asks for more.
    const LONGEST: Duration = Duration::from_secs(5 * 60);
    /// The longest `Retry-After` that counts.
    const LONGEST_ASKED: Duration = Duration::from_secs(60);
    /// A 429 so long ago says nothing about the next login.
    const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
    /// So many of them are repeated by the login itself, as the service advises (§7): after 1, 2, 4 and 8 s.
    const REPEATED: u32 = 4;

    /// Returns this with one more, answered at `now`. `asked` is its `Retry-After`.
    pub(crate) fn and(self, asked: Option<Duration>, now: Duration) -> Self {
        let is_forgotten = self.at + Self::FORGOTTEN_AFTER <= now;
        let count = if is_forgotten { 1 } else { self.count.saturating_add(1) };
        let grown = Duration::from_secs(1 << (count - 1).min(16)).min(Self::LONGEST);
        Self { count, at: now, wait: grown.max(asked.unwrap_or_default().min(Self::LONGEST_ASKED)) }
    }

    /// Returns what a store says: `count` logins, the last at `at`, and the wait after it.
    pub(crate) fn stored(count: u32, at: Duration, wait: Duration, now: Duration) -> Self {
        Self { count, at: at.min(now), wait: wait.min(Self::LONGEST) }
    }

    /// Returns when the next login may leave.
    pub(crate) fn until(self) -> Duration {
        self.at + self.wait
    }

    /// True if the login that met the last of them repeats itself.
    pub(crate) fn is_repeated(self) -> bool {
        self.count <= Self::REPEATED
    }
}

/// Says that no login leaves because too many were answered with 429; a source of an error.
pub(crate) struct ThrottledLogins {
    pub(crate) count: u32,
    /// When the next one may leave, by this machine's clock.
    pub(crate) next: Option<SystemTime>,
}

impl fmt::Display for ThrottledLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logins = if self.count == 1 { "login was" } else { "logins in a row were" };
        write!(f, "{} {logins} answered with 429", self.count)?;
        match self.next {
            Some(next) => {
                write!(f, "; the next may leave at {}, or after a reset", httpdate::fmt_http_date(next))
            }
            None => Ok(()),
        }
    }
}

steadfast_call::debug_in_one_line!(ThrottledLogins);

impl Error for ThrottledLogins {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_to_five_minutes_and_are_forgotten_after_an_hour() {
        let mut throttled = Throttled::default();
        let mut now = Duration::from_secs(10_000);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            throttled = throttled.and(None, now);
            assert_eq!(throttled.until(), now + Duration::from_secs(seconds));
            now = throttled.until();
        }
        assert_eq!(throttled.and(None, throttled.at + Throttled::FORGOTTEN_AFTER).count, 1);
    }

    #[test]
    fn a_longer_wait_that_the_service_asks_for_counts_up_to_a_minute() {
        for (asked, waits) in [(0, 1), (7, 7), (9_999, 60)] {
            let throttled = Throttled::default().and(Some(Duration::from_secs(asked)), Duration::ZERO);
            assert_eq!(throttled.wait, Duration::from_secs(waits));
        }
    }

    #[test]
    fn no_clock_that_was_set_and_no_record_makes_a_wait_longer_than_five_minutes() {
        let now = Duration::from_secs(100);
        let stored = Throttled::stored(u32::MAX, Duration::MAX, Duration::MAX, now);
        assert_eq!(stored.until(), now + Throttled::LONGEST);
        assert_eq!(stored.and(None, now).wait, Throttled::LONGEST);
    }
}
