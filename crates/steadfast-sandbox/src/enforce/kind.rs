use std::{error::Error, fmt, str::FromStr, time::Duration};

/// The rule by which a gateway counts requests.
///
/// The specification names limits and no rule (§8), so every zone can have any of these. The names on the command
/// line are stable: [`Display`](fmt::Display) writes what [`FromStr`] reads, parameters included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `fixed`, `fixed:250ms`: counts from zero in each of `[phase + k·T, phase + (k + 1)·T)`.
    FixedWindow {
        /// When a window begins, modulo the period.
        phase: Duration,
    },
    /// `first-hit`: counts in `[t, t + T)`, where `t` is the first counted request after the previous such window
    /// ended.
    FirstHit,
    /// `sliding-log`: counts in `(now − T, now]`.
    SlidingLog,
    /// `sliding-counter`, `sliding-counter:250ms`: two fixed windows, the previous one weighted by the part of it
    /// that the last `T` still cover.
    SlidingCounter {
        /// When a bucket begins, modulo the period.
        phase: Duration,
    },
    /// `counting-rejects`, `counting-rejects:250ms`: the sliding counter, in which rejected requests count like
    /// admitted ones.
    ///
    /// The same as [`Kind::SlidingCounter`] with [`Enforcer::counting_rejects`](super::Enforcer::counting_rejects).
    CountingRejects {
        /// When a bucket begins, modulo the period.
        phase: Duration,
    },
    /// `token-bucket`: a bucket of `N` tokens, full at first, which gains `N` evenly in each period.
    TokenBucket,
    /// `whole-second`: counts from zero in each whole second (minute, …) of the gateway's wall clock.
    WholeSecond,
    /// `leaky-bucket`, `leaky-bucket:5`: nginx's `limit_req … burst=b nodelay`.
    LeakyBucket {
        /// How many requests may be ahead of the rate.
        burst: u32,
    },
}

const FIXED: &str = "fixed";
const FIRST_HIT: &str = "first-hit";
const SLIDING_LOG: &str = "sliding-log";
const SLIDING_COUNTER: &str = "sliding-counter";
const COUNTING_REJECTS: &str = "counting-rejects";
const TOKEN_BUCKET: &str = "token-bucket";
const WHOLE_SECOND: &str = "whole-second";
const LEAKY_BUCKET: &str = "leaky-bucket";

impl Kind {
    /// Every kind, with the default parameter of its bare name: phase zero, burst zero.
    pub const ALL: [Self; 8] = [
        Self::FixedWindow { phase: Duration::ZERO },
        Self::FirstHit,
        Self::SlidingLog,
        Self::SlidingCounter { phase: Duration::ZERO },
        Self::CountingRejects { phase: Duration::ZERO },
        Self::TokenBucket,
        Self::WholeSecond,
        Self::LeakyBucket { burst: 0 },
    ];

    /// Returns the kinds that let a whole limit through at once, with windows that begin at `phase`: all but the leaky
    /// bucket.
    #[must_use]
    pub const fn of_whole_limits(phase: Duration) -> [Self; 7] {
        [
            Self::FixedWindow { phase },
            Self::FirstHit,
            Self::SlidingLog,
            Self::TokenBucket,
            Self::WholeSecond,
            Self::SlidingCounter { phase },
            Self::CountingRejects { phase },
        ]
    }

    /// True if it weighs the requests of the window before.
    #[must_use]
    pub const fn interpolates(self) -> bool {
        matches!(self, Self::SlidingCounter { .. } | Self::CountingRejects { .. })
    }

    /// Returns the name without a parameter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FixedWindow { .. } => FIXED,
            Self::FirstHit => FIRST_HIT,
            Self::SlidingLog => SLIDING_LOG,
            Self::SlidingCounter { .. } => SLIDING_COUNTER,
            Self::CountingRejects { .. } => COUNTING_REJECTS,
            Self::TokenBucket => TOKEN_BUCKET,
            Self::WholeSecond => WHOLE_SECOND,
            Self::LeakyBucket { .. } => LEAKY_BUCKET,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::FixedWindow { phase }
            | Self::SlidingCounter { phase }
            | Self::CountingRejects { phase }
                if !phase.is_zero() =>
            {
                let (count, unit) = in_units(phase);
                write!(f, ":{count}{unit}")
            }
            Self::LeakyBucket { burst } if burst > 0 => write!(f, ":{burst}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Kind {
    type Err = InvalidKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let kind = Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| InvalidKind::UnknownName { given: name.to_owned() })?;
        let Some(given) = parameter else { return Ok(kind) };
        let phase = || {
            duration(given)
                .ok_or_else(|| InvalidKind::InvalidPhase { kind: kind.name(), given: given.to_owned() })
        };
        match kind {
            Self::FixedWindow { .. } => Ok(Self::FixedWindow { phase: phase()? }),
            Self::SlidingCounter { .. } => Ok(Self::SlidingCounter { phase: phase()? }),
            Self::CountingRejects { .. } => Ok(Self::CountingRejects { phase: phase()? }),
            Self::LeakyBucket { .. } => whole(given)
                .and_then(|burst| u32::try_from(burst).ok())
                .map(|burst| Self::LeakyBucket { burst })
                .ok_or_else(|| InvalidKind::InvalidBurst { given: given.to_owned() }),
            Self::FirstHit | Self::SlidingLog | Self::TokenBucket | Self::WholeSecond => {
                Err(InvalidKind::UnexpectedParameter { kind: kind.name(), given: given.to_owned() })
            }
        }
    }
}

/// A text that names no [`Kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKind {
    /// The name is none of those that the message lists.
    UnknownName {
        /// The name as given.
        given: String,
    },
    /// The phase is not a whole number with a unit.
    InvalidPhase {
        /// The kind that takes the phase.
        kind: &'static str,
        /// The phase as given.
        given: String,
    },
    /// The burst is not a whole number below 2³².
    InvalidBurst {
        /// The burst as given.
        given: String,
    },
    /// The kind takes no parameter.
    UnexpectedParameter {
        /// The kind.
        kind: &'static str,
        /// The parameter as given.
        given: String,
    },
}

impl fmt::Display for InvalidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { given } => {
                let names = Kind::ALL.map(Kind::name).join(", ");
                write!(f, "unknown enforcement {given:?}, expected one of {names}")
            }
            Self::InvalidPhase { kind, given } => {
                write!(f, "invalid phase {given:?} of {kind}, expected such as 250ms (ns, us, ms, s)")
            }
            Self::InvalidBurst { given } => {
                write!(f, "invalid burst {given:?} of {LEAKY_BUCKET}, expected a whole number such as 5")
            }
            Self::UnexpectedParameter { kind, given } => {
                write!(f, "{kind} takes no parameter, got {given:?}")
            }
        }
    }
}

impl Error for InvalidKind {}

/// Units of a phase in nanoseconds, the longest first.
const UNITS: [(u128, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];

/// Returns the longest unit of which the duration is a whole multiple.
fn in_units(duration: Duration) -> (u128, &'static str) {
    let nanos = duration.as_nanos();
    UNITS
        .into_iter()
        .find(|(unit, _)| nanos.is_multiple_of(*unit))
        .map_or((nanos, "ns"), |(unit, suffix)| (nanos / unit, suffix))
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (unit, _) = UNITS.into_iter().find(|(_, suffix)| *suffix == &text[digits.len()..])?;
    let nanos = whole(digits)?.checked_mul(unit)?;
    let seconds = u64::try_from(nanos / UNITS[0].0).ok()?;
    Some(Duration::new(seconds, u32::try_from(nanos % UNITS[0].0).ok()?))
}

/// Parses a number of digits only; the standard parser also accepts a leading `+`.
fn whole(text: &str) -> Option<u128> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_stable() {
        let names = Kind::ALL.map(|kind| kind.to_string());
        assert_eq!(
            names,
            [
                "fixed",
                "first-hit",
                "sliding-log",
                "sliding-counter",
                "counting-rejects",
                "token-bucket",
                "whole-second",
                "leaky-bucket",
            ]
        );
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }

    #[test]
    fn parameters_follow_a_colon() {
        let ms = Duration::from_millis;
        assert_eq!("fixed:250ms".parse(), Ok(Kind::FixedWindow { phase: ms(250) }));
        assert_eq!("sliding-counter:2s".parse(), Ok(Kind::SlidingCounter { phase: ms(2_000) }));
        assert_eq!(
            "counting-rejects:7us".parse(),
            Ok(Kind::CountingRejects { phase: Duration::from_micros(7) })
        );
        assert_eq!("fixed:1ns".parse(), Ok(Kind::FixedWindow { phase: Duration::from_nanos(1) }));
        assert_eq!("leaky-bucket:5".parse(), Ok(Kind::LeakyBucket { burst: 5 }));
        assert_eq!("leaky-bucket:1".parse(), Ok(Kind::LeakyBucket { burst: 1 }));
        assert_eq!("leaky-bucket:4294967295".parse(), Ok(Kind::LeakyBucket { burst: u32::MAX }));
    }

    #[test]
    fn parameters_are_written_in_the_longest_unit_that_fits() {
        for text in ["fixed:250ms", "fixed:60s", "fixed:1500us", "fixed:1000001ns", "leaky-bucket:1"] {
            assert_eq!(text.parse::<Kind>().unwrap().to_string(), text);
        }
        assert_eq!("fixed:60000ms".parse::<Kind>().unwrap().to_string(), "fixed:60s");
        assert_eq!("fixed:0ms".parse::<Kind>().unwrap().to_string(), "fixed");
        assert_eq!("leaky-bucket:0".parse::<Kind>().unwrap().to_string(), "leaky-bucket");
    }

    #[test]
    fn unknown_name_is_told_the_known_ones() {
        let error = "gcra".parse::<Kind>().unwrap_err();
        assert_eq!(error, InvalidKind::UnknownName { given: "gcra".to_owned() });
        assert_eq!(
            error.to_string(),
            "unknown enforcement \"gcra\", expected one of fixed, first-hit, sliding-log, sliding-counter, \
             counting-rejects, token-bucket, whole-second, leaky-bucket"
        );
    }

    #[test]
    fn parameter_that_means_nothing_is_refused() {
        let refused = |text: &str| text.parse::<Kind>().unwrap_err().to_string();
        for phase in ["", "250", "ms", "-1ms", "+1ms", "1.5s", "1m", "1 s", "ä", "9999999999999999999999s"] {
            let message = refused(&format!("fixed:{phase}"));
            assert!(message.starts_with("invalid phase") && message.contains("fixed"), "{message}");
        }
        for burst in ["", "-1", "+1", "5ms", "4294967296"] {
            let message = refused(&format!("leaky-bucket:{burst}"));
            assert!(message.starts_with("invalid burst"), "{message}");
        }
        for name in [FIRST_HIT, SLIDING_LOG, TOKEN_BUCKET, WHOLE_SECOND] {
            assert_eq!(refused(&format!("{name}:5")), format!("{name} takes no parameter, got \"5\""));
        }
        for name in ["", "Fixed", "fixed ", ":5"] {
            assert!(refused(name).starts_with("unknown enforcement"), "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn text_of_a_kind_names_that_kind(which in 0..Kind::ALL.len(), phase: Duration, burst: u32) {
            let kind = match Kind::ALL[which] {
                Kind::FixedWindow { .. } => Kind::FixedWindow { phase },
                Kind::SlidingCounter { .. } => Kind::SlidingCounter { phase },
                Kind::CountingRejects { .. } => Kind::CountingRejects { phase },
                Kind::LeakyBucket { .. } => Kind::LeakyBucket { burst },
                other => other,
            };
            prop_assert_eq!(kind.to_string().parse(), Ok(kind));
        }

        #[test]
        fn no_text_panics(text in ".*", parameter in ".*") {
            let _ = text.parse::<Kind>();
            for kind in Kind::ALL {
                let _ = format!("{kind}:{parameter}").parse::<Kind>();
            }
        }
    }
}
