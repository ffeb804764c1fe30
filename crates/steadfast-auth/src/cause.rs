use std::fmt;

/// A possible reason for a 401 on a token that was never accepted (§7: one text stands for all of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The service keeps ten sessions a user and this process alone has opened about as many within a day (§5).
    SessionEvicted {
        /// Sessions opened by this process in the last 24 hours.
        opened: usize,
    },
    /// The token was ended before its time: by a login elsewhere, by hand, or overnight.
    Ended,
    /// This machine's address has changed since the token last worked.
    AddressChanged,
    /// The login was accepted and the first use of its token was not: enforcement of the static IP differs (§5).
    IpNotWhitelisted,
    /// The token was issued for another API key, or the key is wrong.
    ApiKey,
    /// This machine's clock is far off the service's.
    Clock {
        /// How far the service is ahead, in milliseconds.
        offset_ms: i64,
    },
    /// The token was given by hand: it may be cut, of another environment, or long expired.
    GivenToken,
    /// Something on the way changes or drops the `Authorization` header.
    HeaderChanged,
}

/// The facts by which causes are ranked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// The token was given and not fetched.
    pub(crate) given: bool,
    /// The service has accepted the token: neither the key nor the header is wrong.
    pub(crate) worked: bool,
    pub(crate) sessions: usize,
    pub(crate) offset_ms: Option<i64>,
}

/// A further session evicts the oldest one (§5).
const SESSIONS: usize = 10;
/// A clock this far off breaks one-time codes and signatures alike.
const FAR_MS: i64 = 30_000;

impl Evidence {
    /// The causes that fit, the likeliest first.
    pub(crate) fn rank(self) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.given {
            causes.push(Cause::GivenToken);
        }
        if self.sessions >= SESSIONS {
            causes.push(Cause::SessionEvicted { opened: self.sessions });
        }
        if self.worked {
            causes.extend([Cause::Ended, Cause::AddressChanged]);
            return causes;
        }
        causes.push(Cause::IpNotWhitelisted);
        causes.push(Cause::ApiKey);
        if let Some(offset_ms) = self.offset_ms.filter(|o| o.abs() >= FAR_MS) {
            causes.push(Cause::Clock { offset_ms });
        }
        causes.push(Cause::HeaderChanged);
        causes
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionEvicted { opened } => {
                write!(f, "session evicted: {opened} logins in 24 hours, and a user has ten sessions")
            }
            Self::Ended => f.write_str("the session was ended elsewhere, before its time: log in again"),
            Self::AddressChanged => f.write_str(
                "this machine's address has changed, and the new one is not on the app's whitelist",
            ),
            Self::IpNotWhitelisted => f.write_str("this machine's address is not on the app's whitelist"),
            Self::ApiKey => f.write_str("api_key is wrong or not the one the token was issued for"),
            Self::Clock { offset_ms } => {
                let (by, side) =
                    (offset_ms.unsigned_abs(), if *offset_ms < 0 { "ahead of" } else { "behind" });
                write!(f, "this machine's clock is {by} ms {side} the service's")
            }
            Self::GivenToken => f.write_str("the given token is not one of this service or has expired"),
            Self::HeaderChanged => f.write_str("the Authorization header is changed or dropped on the way"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_cause_comes_first() {
        let plain = Evidence { given: false, worked: false, sessions: 1, offset_ms: Some(200) };
        assert_eq!(plain.rank(), [Cause::IpNotWhitelisted, Cause::ApiKey, Cause::HeaderChanged]);
        assert_eq!(Evidence { given: true, ..plain }.rank()[0], Cause::GivenToken);
        assert_eq!(Evidence { sessions: 10, ..plain }.rank()[0], Cause::SessionEvicted { opened: 10 });
        let worked = Evidence { worked: true, ..plain }.rank();
        assert_eq!(
            worked,
            [Cause::Ended, Cause::AddressChanged],
            "what its acceptance has disproved is gone"
        );
        let off = Evidence { offset_ms: Some(-600_000), ..plain }.rank();
        assert!(off.contains(&Cause::Clock { offset_ms: -600_000 }));
    }

    #[test]
    fn each_cause_says_something_of_its_own_and_its_figure() {
        let causes = [
            Cause::SessionEvicted { opened: 12 },
            Cause::Ended,
            Cause::AddressChanged,
            Cause::IpNotWhitelisted,
            Cause::ApiKey,
            Cause::Clock { offset_ms: -600_000 },
            Cause::GivenToken,
            Cause::HeaderChanged,
        ];
        let texts = causes.map(|cause| cause.to_string());
        assert!(texts.iter().all(|text| !text.is_empty()), "{texts:?}");
        assert_eq!(texts.iter().collect::<std::collections::HashSet<_>>().len(), causes.len(), "{texts:?}");
        assert!(texts[0].contains("12") && texts[5].contains("600000 ms ahead"), "{texts:?}");
    }
}
