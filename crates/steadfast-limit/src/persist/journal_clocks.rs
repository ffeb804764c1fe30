use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use steadfast_call::{BootClock, WallClock};

/// The clocks that tell how long ago an earlier process wrote its record.
#[derive(Clone)]
pub(crate) struct JournalClocks {
    pub(crate) wall: WallClock,
    pub(crate) boot: BootClock,
    /// Identifies the boot of the machine, if the system offers that.
    pub(crate) boot_id: Option<u64>,
}

/// An instant, read from all clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Nanoseconds since 1970.
    pub(crate) wall: u64,
    /// The boot, and the nanoseconds since it.
    pub(crate) boot: Option<(u64, u64)>,
}

impl JournalClocks {
    /// By how much the wall clock may have jumped forward unnoticed between two boots.
    const WALL_ERROR: Duration = Duration::from_secs(1);

    /// Makes clocks for this machine.
    pub(crate) fn new(wall: WallClock, boot: BootClock) -> Self {
        Self { wall, boot, boot_id: boot_id() }
    }

    pub(crate) fn now(&self) -> Written {
        let wall = self.wall.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let boot = self.boot_id.zip(self.boot.now().map(nanos));
        Written { wall: nanos(wall), boot }
    }

    /// Returns how long ago that was, at least.
    ///
    /// The boot clock cannot be set, but means nothing after another boot. The wall clock can be set; if it went
    /// back, no time counts as passed.
    pub(crate) fn since(&self, then: Written) -> Duration {
        let now = self.now();
        match (now.boot, then.boot) {
            (Some((id, now)), Some((then_id, then))) if id == then_id => {
                Duration::from_nanos(now.saturating_sub(then))
            }
            _ => Duration::from_nanos(now.wall.saturating_sub(then.wall)).saturating_sub(Self::WALL_ERROR),
        }
    }
}

impl fmt::Debug for JournalClocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalClocks").field("boot_id", &self.boot_id).finish_non_exhaustive()
    }
}

fn nanos(since: Duration) -> u64 {
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the first half of the id that Linux draws at random at each boot.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_id() -> Option<u64> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_id() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Makes clocks that stand at the given seconds.
    fn clocks(wall: u64, boot: Option<u64>, boot_id: Option<u64>) -> JournalClocks {
        JournalClocks {
            wall: WallClock::new(move || UNIX_EPOCH + Duration::from_secs(wall)),
            boot: BootClock::new(move || boot.map(Duration::from_secs)),
            boot_id,
        }
    }

    #[test]
    fn l01_the_wall_clock_counts_only_after_another_start_of_the_machine() {
        let then = clocks(10_000, Some(500), Some(7)).now();
        for wall in [0, 6_400, 10_000, 10_030, 13_600] {
            assert_eq!(clocks(wall, Some(504), Some(7)).since(then), 4 * SECOND, "wall clock at {wall}");
        }
        for other in [(Some(504), Some(8)), (Some(504), None), (None, Some(7)), (None, None)] {
            assert_eq!(clocks(10_030, other.0, other.1).since(then), 29 * SECOND, "{other:?}");
            assert_eq!(clocks(9_000, other.0, other.1).since(then), Duration::ZERO, "{other:?}");
        }
        assert_eq!(clocks(10_030, Some(400), Some(7)).since(then), Duration::ZERO);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn l01_linux_says_which_start_of_the_machine_it_is() {
        assert!(boot_id().is_some_and(|id| id > 0));
        assert_eq!(boot_id(), boot_id());
    }
}
