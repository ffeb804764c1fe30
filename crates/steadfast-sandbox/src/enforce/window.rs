use std::{
    error::Error,
    fmt,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

/// How many requests are allowed in how much time, such as 10 in one second (§8).
///
/// The [`Kind`](super::Kind) says how they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    limit: NonZeroU32,
    period: NonZeroU64,
}

const SECOND: NonZeroU64 = NonZeroU64::new(1_000_000_000).unwrap();
const MINUTE: NonZeroU64 = NonZeroU64::new(60_000_000_000).unwrap();

impl Window {
    /// Allows `limit` requests in each `period`.
    ///
    /// # Errors
    /// [`InvalidWindow`] if `limit` or `period` is zero, or `period` is more than 2⁶⁴ − 1 ns (584 years).
    pub fn new(limit: u32, period: Duration) -> Result<Self, InvalidWindow> {
        let limit = NonZeroU32::new(limit).ok_or(InvalidWindow::NoRequests)?;
        let nanos = u64::try_from(period.as_nanos()).map_err(|_| InvalidWindow::TooLong)?;
        let period = NonZeroU64::new(nanos).ok_or(InvalidWindow::NoTime)?;
        Ok(Self { limit, period })
    }

    /// Allows `limit` requests in each second.
    #[must_use]
    pub const fn per_second(limit: NonZeroU32) -> Self {
        Self { limit, period: SECOND }
    }

    /// Allows `limit` requests in each minute.
    #[must_use]
    pub const fn per_minute(limit: NonZeroU32) -> Self {
        Self { limit, period: MINUTE }
    }

    /// Returns the number of requests, at least one.
    #[must_use]
    pub const fn limit(self) -> u32 {
        self.limit.get()
    }

    /// Returns the length of the window, more than zero.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_nanos(self.period.get())
    }

    /// Returns the limit as wide as the counters.
    pub(super) fn requests(self) -> u64 {
        u64::from(self.limit.get())
    }

    /// Returns the period in nanoseconds.
    pub(super) const fn nanos(self) -> u64 {
        self.period.get()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {:?}", self.limit, self.period())
    }
}

/// Why a window is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidWindow {
    /// The limit is zero.
    NoRequests,
    /// The period is zero.
    NoTime,
    /// The period has more than 2⁶⁴ − 1 nanoseconds.
    TooLong,
}

impl fmt::Display for InvalidWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRequests => "limit of the window is zero",
            Self::NoTime => "period of the window is zero",
            Self::TooLong => "period of the window is longer than 584 years",
        })
    }
}

impl Error for InvalidWindow {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_refuses_what_cannot_be_enforced() {
        let day = Duration::from_secs(86_400);
        assert_eq!(Window::new(0, day), Err(InvalidWindow::NoRequests));
        assert_eq!(Window::new(1, Duration::ZERO), Err(InvalidWindow::NoTime));
        assert_eq!(Window::new(1, Duration::MAX), Err(InvalidWindow::TooLong));
        let longest = Duration::from_nanos(u64::MAX);
        assert_eq!(Window::new(1, longest).unwrap().period(), longest);
        assert_eq!(Window::new(1, longest + Duration::from_nanos(1)), Err(InvalidWindow::TooLong));
    }

    #[test]
    fn both_windows_of_the_general_zone_read_as_in_the_spec() {
        let burst = Window::per_second(NonZeroU32::new(10).unwrap());
        let sustained = Window::per_minute(NonZeroU32::new(400).unwrap());
        assert_eq!(burst, Window::new(10, Duration::from_secs(1)).unwrap());
        assert_eq!(sustained, Window::new(400, Duration::from_secs(60)).unwrap());
        assert_eq!((burst.limit(), sustained.limit()), (10, 400));
        assert_eq!(sustained.to_string(), "400 in 60s");
    }
}
