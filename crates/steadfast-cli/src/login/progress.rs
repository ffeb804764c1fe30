use std::{
    io::IsTerminal,
    time::{Duration, SystemTime},
};

use indicatif::{ProgressBar, ProgressStyle};
use steadfast::auth::TokenSource;
use tokio::task::JoinHandle;

use crate::clock::wall;

/// The length of an authenticator's time step, in seconds.
const STEP: u64 = 30;
const BETWEEN_DRAWS: Duration = Duration::from_millis(200);

/// Shows on a terminal the time until the next code; silent elsewhere.
pub(super) struct Progress {
    bar: ProgressBar,
    drawing: Option<JoinHandle<()>>,
}

impl Progress {
    pub(super) fn start(wanted: bool, source: &TokenSource) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), drawing: None };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        let (drawn, source) = (bar.clone(), source.clone());
        let drawing = tokio::spawn(async move {
            loop {
                let ahead = source.status().clock_offset_ms.unwrap_or_default();
                drawn.set_message(format!("logging in; next code in {} s", next_code(wall(), ahead)));
                drawn.tick();
                tokio::time::sleep(BETWEEN_DRAWS).await;
            }
        });
        Self { bar, drawing: Some(drawing) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(drawing) = &self.drawing {
            drawing.abort();
        }
        self.bar.finish_and_clear();
    }
}

/// Returns the whole seconds until the next time step by the service's clock.
fn next_code(now: SystemTime, ahead_ms: i64) -> u64 {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or_default().saturating_add(ahead_ms).unsigned_abs();
    STEP - now / 1_000 % STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_countdown_follows_the_services_clock() {
        let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        assert_eq!(next_code(at(60_000), 0), 30);
        assert_eq!(next_code(at(89_999), 0), 1);
        assert_eq!(next_code(at(89_000), 1_500), 30);
    }
}
