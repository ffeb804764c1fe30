use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// The pauses after logins in a row that did not help for long. Then the last one stays.
const PAUSES: [Duration; 5] =
    [MINUTE, MINUTE.saturating_mul(2), MINUTE.saturating_mul(4), MINUTE.saturating_mul(8), LONGEST];
const LONGEST: Duration = MINUTE.saturating_mul(15);
/// A time without such a login after which the row begins again.
const CALM: Duration = MINUTE.saturating_mul(30);

/// Spaces the logins that follow the refusal of a young token.
///
/// A successful login spends no failure budget, but one of ten sessions, and it may end a session that another program
/// uses. So the first one starts at once, and each further one waits longer. With many sessions, or with a token that is
/// refused for some requests alone, it waits longest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspicions {
    // When the last such login started.
    last: Option<Duration>,
    // How many of them brought a token, in a row.
    row: usize,
    // One is under way.
    pending: bool,
}

impl Suspicions {
    /// Returns when the next such login may start; `None` if there was none before.
    pub(super) fn next(&self, is_patient: bool) -> Option<Duration> {
        let nth = self.row.clamp(1, PAUSES.len()) - 1;
        Some(self.last? + if is_patient { LONGEST } else { PAUSES[nth] })
    }

    /// Notes that such a login starts.
    pub(super) fn begin(&mut self, now: Duration) {
        if self.last.is_some_and(|last| now >= last + CALM) {
            self.row = 0;
        }
        (self.last, self.pending) = (Some(now), true);
    }

    /// Notes that a login brought a token. One that failed opens no session: the login policy makes the next one wait.
    pub(super) fn granted(&mut self) {
        self.row += usize::from(self.pending);
    }

    /// Notes that the login has ended.
    pub(super) fn end(&mut self) {
        self.pending = false;
    }

    /// Takes over when another process made the last such login.
    pub(super) fn restore(&mut self, last: Option<Duration>) {
        self.last = self.last.max(last);
    }

    pub(super) fn last(&self) -> Option<Duration> {
        self.last
    }
}
