//! Whether the service can be reached, as the last calls have found it.

use std::time::Duration;

use tokio::time::Instant;

/// How often a read tries a service that could not be reached.
const EACH: Duration = Duration::from_secs(1);

/// Keeps reads from waiting for a service that is away: a call to it is tried again for about 15 s.
///
/// 1. Once a call has got no answer in all that time, reads are answered at once.
/// 2. One read a second is let through, to try it.
/// 3. The first answer, to whatever call, ends that.
///
/// Orders and cancels are always tried.
#[derive(Debug, Default)]
pub(crate) struct Away {
    /// When the next read may try; `None` while the service can be reached.
    next: Option<Instant>,
}

impl Away {
    /// Returns true if a read is to be answered at once. Otherwise it tries.
    pub(crate) fn spares(&mut self, now: Instant) -> bool {
        match self.next {
            None => false,
            Some(next) if now < next => true,
            Some(_) => {
                self.next = Some(now + EACH);
                false
            }
        }
    }

    /// A call has got no answer of the service.
    pub(crate) fn unreachable(&mut self, now: Instant) {
        self.next.get_or_insert(now + EACH);
    }

    /// A call was answered.
    pub(crate) fn answered(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_read_a_second_tries_a_service_that_is_away() {
        let (mut away, start) = (Away::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert!(!away.spares(at(0)), "nothing is known");
        away.unreachable(at(0));
        assert!(away.spares(at(1)) && away.spares(at(999)));
        assert!(!away.spares(at(1_000)), "one tries");
        assert!(away.spares(at(1_001)) && away.spares(at(1_999)));
        // A second call that fails does not put the next try off.
        away.unreachable(at(1_999));
        assert!(!away.spares(at(2_000)));
        away.answered();
        assert!(!away.spares(at(2_001)), "it is back");
    }
}
