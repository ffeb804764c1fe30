//! The tables of zones: how a run keeps the service's limits. Pure.

use std::{num::NonZeroU32, time::Duration};

use steadfast::limit::{Builder, Profile, Quota, Zone, ZoneLimiter};

use super::{
    Problem,
    entry::Entry,
    key::{ZONE_TABLES, nearest},
};

/// The changes that a file makes to the service's zones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zones(Vec<(Zone, Change)>);

impl Zones {
    /// Reads the tables, or returns what is wrong with them.
    pub(super) fn of(entries: &[Entry]) -> Result<Self, Vec<Problem>> {
        let (mut zones, mut problems) = (Self::default(), Vec::new());
        for entry in entries {
            let Some((_, zone)) = ZONE_TABLES.into_iter().find(|(table, _)| *table == entry.key.table) else {
                continue;
            };
            let checked = Change::read(entry).and_then(|change| zones.with(zone, change));
            match checked {
                Ok(with) => zones = with,
                Err(what) => problems.push(Problem::at(entry.line, format!("{}: {what}", entry.key.name))),
            }
        }
        if problems.is_empty() { Ok(zones) } else { Err(problems) }
    }

    /// Changes the service's zones.
    pub(crate) fn change(&self, preset: Builder) -> Builder {
        self.0.iter().fold(preset, |zones, (zone, change)| zones.adjust(*zone, |quota| change.make(quota)))
    }

    /// Adds a change that leaves the limiter a valid one.
    fn with(&self, zone: Zone, change: Change) -> Result<Self, String> {
        let mut with = self.clone();
        with.0.push((zone, change));
        let built = with.change(ZoneLimiter::builder().preset()).build();
        built.map(|_| with).map_err(|error| error.to_string())
    }
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Headroom(u32),
    Limits(Vec<(u32, Duration)>),
    Profile(Profile),
    Settle(Duration),
}

impl Change {
    fn read(entry: &Entry) -> Result<Self, String> {
        match entry.key.name.as_str() {
            "headroom" => entry.text().parse().map(Self::Headroom).map_err(|error| error.to_string()),
            "limits" if entry.texts().is_empty() => {
                Err("it is empty; without it the service's limits hold".to_owned())
            }
            "limits" => {
                entry.texts().iter().map(|text| limit(text)).collect::<Result<_, _>>().map(Self::Limits)
            }
            "profile" => profile(entry.text()).map(Self::Profile),
            _ => period(entry.text())
                .map(Self::Settle)
                .ok_or_else(|| format!("{:?} is no time such as \"250ms\" or \"2s\"", entry.text())),
        }
    }

    fn make(&self, quota: Quota) -> Quota {
        match self {
            Self::Headroom(slots) => quota.headroom(*slots),
            Self::Limits(given) => {
                let windows = windows(quota.zone(), given);
                windows
                    .into_iter()
                    .fold(quota.clear_limits(), |quota, (limit, period)| quota.limit(limit, period))
            }
            Self::Profile(profile) => quota.profile(*profile),
            Self::Settle(time) => quota.settle(*time),
        }
    }
}

/// Returns the windows that hold: those that are given, and the service's of all other periods. A window that were left out
/// would be forgotten by what the runs of an account tell each other, too.
fn windows(zone: Zone, given: &[(u32, Duration)]) -> Vec<(u32, Duration)> {
    let rows = steadfast_spec::zones().into_iter().filter(|row| row.zone == zone);
    let of_service = rows.flat_map(|row| row.windows).map(|window| (window.limit().get(), window.period()));
    let others = of_service.filter(|(_, period)| given.iter().all(|(_, its)| its != period));
    given.iter().copied().chain(others).collect()
}

/// Returns the limits of a table in words, as a file has them; without an entry those of the service.
pub(super) fn limits(table: &str, entry: Option<&Entry>) -> Option<Vec<String>> {
    let (_, zone) = ZONE_TABLES.into_iter().find(|(its, _)| *its == table)?;
    let given: Option<Vec<_>> =
        entry.map_or(Some(Vec::new()), |entry| entry.texts().iter().map(|text| limit(text).ok()).collect());
    let mut windows = windows(zone, &given?);
    windows.sort_by_key(|(_, period)| *period);
    Some(windows.into_iter().map(|(limit, period)| format!("{limit}/{}", in_words(period))).collect())
}

/// Reads such as `10/s`, `400/min` and `3/2s`.
fn limit(text: &str) -> Result<(u32, Duration), String> {
    let read =
        text.split_once('/').and_then(|(limit, time)| Some((limit.trim().parse().ok()?, period(time)?)));
    read.ok_or_else(|| format!("{text:?} is no limit such as \"10/s\", \"400/min\" or \"3/2s\""))
}

const UNITS: [(&str, Duration); 4] = [
    ("h", Duration::from_secs(3_600)),
    ("min", Duration::from_secs(60)),
    ("s", Duration::from_secs(1)),
    ("ms", Duration::from_millis(1)),
];

/// Reads a number with a unit; the unit alone is one of it.
fn period(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
    unit.checked_mul(if number.is_empty() { 1 } else { number.parse().ok()? })
}

fn in_words(period: Duration) -> String {
    let whole = |unit: &Duration| period.as_nanos().is_multiple_of(unit.as_nanos());
    match UNITS.into_iter().find(|(_, unit)| whole(unit)) {
        Some((name, unit)) if unit == period => name.to_owned(),
        Some((name, unit)) => format!("{}{name}", period.as_nanos() / unit.as_nanos()),
        None => format!("{period:?}"),
    }
}

/// Reads a profile; those that spread requests have their burst behind a colon.
fn profile(text: &str) -> Result<Profile, String> {
    let (name, burst) = text.split_once(':').map_or((text, None), |(name, burst)| (name, Some(burst)));
    let burst_of = |make: fn(NonZeroU32) -> Profile| match burst.map(str::parse) {
        Some(Ok(burst)) => Ok(make(burst)),
        _ => Err(format!("{name} wants a burst from 1 on, as in \"{name}:1\"")),
    };
    match name {
        "paced" => burst_of(|burst| Profile::Paced { burst }),
        "adaptive" => burst_of(|burst| Profile::Adaptive { burst }),
        "universal" | "window-log" if burst.is_some() => Err(format!("{name} has no burst")),
        "universal" => Ok(Profile::Universal),
        "window-log" => Ok(Profile::WindowLog),
        _ => {
            let names = ["universal", "window-log", "paced", "adaptive"];
            let meant = match nearest(name, names) {
                Some(near) => format!("did you mean {near}?"),
                None => "there are universal, window-log, paced:N and adaptive:N".to_owned(),
            };
            Err(format!("unknown profile {text:?}: {meant}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::entry::entries;

    fn told(text: &str) -> Vec<(Option<usize>, String)> {
        let entries = entries(text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let problems = Zones::of(&entries).err().unwrap_or_default();
        problems.into_iter().map(|problem| (problem.line, problem.what)).collect()
    }

    #[test]
    fn a_table_changes_its_zone_and_leaves_the_services_other_windows() {
        let text = "[zones.general]\nlimits = [\"4/s\", \"6/2s\"]\nheadroom = 1\nprofile = \"paced:1\"\n\
            settle = \"250ms\"\n[zones.otp]\nprofile = \"window-log\"\n";
        let entries = entries(text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let zones = Zones::of(&entries).unwrap_or_else(|problems| panic!("{problems:?}"));
        let second = Duration::from_secs(1);
        let whole = zones.change(ZoneLimiter::builder().preset());
        let shown = format!("{whole:?}");
        let own = ZoneLimiter::builder().preset().adjust(Zone::GENERAL, |quota| {
            let quota = quota.clear_limits().limit(4, second).limit(6, 2 * second).limit(400, 60 * second);
            let one = NonZeroU32::MIN;
            quota.headroom(1).profile(Profile::Paced { burst: one }).settle(second / 4)
        });
        assert_eq!(shown, format!("{:?}", own.adjust(Zone::OTP, |otp| otp.profile(Profile::WindowLog))));
        let given = entries.iter().find(|entry| entry.key.name == "limits");
        assert_eq!(limits("zones.general", given).unwrap(), ["4/s", "6/2s", "400/min"]);
        assert_eq!(limits("zones.general", None).unwrap(), ["10/s", "400/min"]);
    }

    #[test]
    fn each_value_that_cannot_hold_is_named() {
        for (value, what) in [
            ("limits = []", "limits: it is empty; without it the service's limits hold"),
            ("limits = [\"10/s\", \"5\"]", "limits: \"5\" is no limit such as"),
            ("limits = [\"10/fortnight\"]", "limits: \"10/fortnight\" is no limit such as"),
            ("limits = [\"-1/s\"]", "limits: \"-1/s\" is no limit such as"),
            ("limits = [\"0/s\"]", "limits: zone general has a window of zero requests"),
            ("limits = [\"3/s\", \"4/1000ms\"]", "limits: zone general has two windows of 1s"),
            ("headroom = 10", "headroom: headroom of zone general leaves nothing of a window"),
            ("headroom = 5000000000", "headroom: number too large"),
            ("profile = \"windowlog\"", "profile: unknown profile \"windowlog\": did you mean window-log?"),
            ("profile = \"fast\"", "profile: unknown profile \"fast\": there are universal, window-log,"),
            ("profile = \"paced\"", "profile: paced wants a burst from 1 on, as in \"paced:1\""),
            ("profile = \"paced:0\"", "profile: paced wants a burst from 1 on"),
            ("profile = \"paced:9\"", "profile: burst of zone general is more than half of a window"),
            ("profile = \"universal:1\"", "profile: universal has no burst"),
            ("settle = \"soon\"", "settle: \"soon\" is no time such as \"250ms\" or \"2s\""),
            ("settle = \"99999999h\"", "settle: zone general"),
        ] {
            let told = told(&format!("[zones.general]\n{value}\n"));
            assert_eq!(told.len(), 1, "{value}: {told:?}");
            assert!(told[0].0 == Some(2) && told[0].1.starts_with(what), "{value}: {told:?}");
        }
        // The key that makes the others impossible is the one below them.
        let both = told("[zones.otp]\nlimits = [\"2/s\"]\nheadroom = 2\n[zones.data]\nheadroom = 100\n");
        assert_eq!(both.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(3), Some(5)], "{both:?}");
    }

    #[test]
    fn times_are_read_as_they_are_told() {
        for (text, millis) in
            [("ms", 1), ("1500ms", 1_500), ("s", 1_000), ("2s", 2_000), ("min", 60_000), ("h", 3_600_000)]
        {
            assert_eq!(period(text), Some(Duration::from_millis(millis)), "{text}");
            assert_eq!(in_words(Duration::from_millis(millis)), text);
        }
        for text in ["", "1", "1 day", "1.5s", "-1s", "99999999999999999999s"] {
            assert_eq!(period(text), None, "{text}");
        }
    }
}
