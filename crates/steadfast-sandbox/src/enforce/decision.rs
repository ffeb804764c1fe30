use std::{error::Error, fmt, time::Duration};

use super::Enforcer;

/// Puts one request to all windows that it falls under: all of them count it as admitted, or none does.
///
/// # Errors
/// [`Refusal`] if a window has no room at `now`. All of them have then noted a rejected request.
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
/// use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};
///
/// let mut narrow = Enforcer::new(Kind::SlidingLog, Window::per_second(NonZeroU32::MIN));
/// let mut wide = Enforcer::new(Kind::SlidingLog, Window::per_minute(NonZeroU32::MIN.saturating_add(1)));
/// let at = Duration::from_secs;
///
/// assert_eq!(decide(&mut [&mut narrow, &mut wide], at(0)), Ok(()));
/// assert_eq!(decide(&mut [&mut narrow, &mut wide], at(0)).unwrap_err().window, 0);
/// // The refused request left the second place of the wide window free.
/// assert_eq!(decide(&mut [&mut narrow, &mut wide], at(1)), Ok(()));
/// assert_eq!(decide(&mut [&mut narrow, &mut wide], at(2)).unwrap_err().window, 1);
/// ```
pub fn decide(windows: &mut [&mut Enforcer], now: Duration) -> Result<(), Refusal> {
    let Some(window) = windows.iter().position(|window| !window.admits(now)) else {
        windows.iter_mut().for_each(|window| window.commit(now));
        return Ok(());
    };
    windows.iter_mut().for_each(|window| window.reject(now));
    let retry_after = windows.iter().map(|window| window.retry_after(now)).max();
    Err(Refusal { window, retry_after: retry_after.unwrap_or_default() })
}

/// A request that exceeds a window, which a gateway answers with 429 (§7, §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The index of the window that has no room; the first if several have none.
    pub window: usize,
    /// How long after the refused request another would be admitted by all windows, if none arrives in between;
    /// [`Duration::MAX`] if never.
    pub retry_after: Duration,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "window {} is exhausted for {:?}", self.window, self.retry_after)
    }
}

impl Error for Refusal {}
