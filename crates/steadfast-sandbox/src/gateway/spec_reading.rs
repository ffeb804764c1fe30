//! The open questions of the specification, with one axis for each question. The simulator draws a point in this space per
//! seed.

mod choice;
mod dress;

use std::{error::Error, fmt};

use crate::enforce::Kind;

use self::choice::{Choice, choices};

choices! {
    /// Which zones `GET /api/oms/orders` counts in.
    ListZone {
        /// General.
        #[default] General = "general",
        /// Data.
        Data = "data",
        /// Both.
        Both = "both",
    }
    /// Which zones place-order counts in.
    OrderZone {
        /// Its own.
        #[default] Own = "own",
        /// Its own and general.
        AlsoGeneral = "also-general",
    }
    /// Whether requests answered with 429 use up quota.
    Refused {
        /// They do not.
        #[default] Free = "free",
        /// They do.
        Counted = "counted",
    }
    /// How a zone counts that has no [enforcer](crate::SandboxBuilder::enforcer) of its own.
    Counting {
        /// In every window of its length.
        #[default] SlidingLog = "sliding-log",
        /// In windows with fixed borders.
        Fixed = "fixed",
        /// In windows that begin with a request.
        FirstHit = "first-hit",
        /// In fixed windows, and a share of the one before.
        SlidingCounter = "sliding-counter",
        /// In a bucket that refills (GCRA).
        TokenBucket = "token-bucket",
        /// In whole seconds and minutes of the wall clock.
        WholeSecond = "whole-second",
    }
    /// How a POST or PUT with a JSON body, or without a `Content-Type`, is refused: §7 names both.
    JsonBody {
        /// 400 `Bad request`, from the gateway.
        #[default] BadRequest = "400",
        /// 415, from the application.
        UnsupportedMediaType = "415",
    }
    /// How a request from an address that is not on the app's whitelist is refused: §5.6 names both.
    IpRefusal {
        /// 401 with no detail.
        #[default] Unauthorized = "401",
        /// 403.
        Forbidden = "403",
    }
    /// The status of an answer without data (§1).
    NoDataStatus {
        /// 200.
        #[default] Ok = "200",
        /// 404.
        NotFound = "404",
    }
    /// Which statuses `GET /api/oms/orders` lists.
    ListShows {
        /// All of them.
        #[default] All = "all",
        /// Open orders only.
        OpenOnly = "open-only",
    }
    /// In which order `GET /api/oms/orders` lists.
    ListOrder {
        /// Oldest first.
        #[default] OldestFirst = "oldest-first",
        /// Newest first.
        NewestFirst = "newest-first",
        /// In a new order for each read.
        Shuffled = "shuffled",
    }
    /// Whether records of the list have prices.
    Prices {
        /// Those that the order has.
        #[default] Present = "present",
        /// None.
        Absent = "absent",
    }
    /// How records of the list write a quantity.
    Quantity {
        /// As a number.
        #[default] Number = "number",
        /// As a text.
        Text = "text",
        /// As a text with a decimal: `"10.0"`.
        Decimal = "decimal",
    }
    /// The form of an order's identifier.
    OrderIds {
        /// Digits.
        #[default] Digits = "digits",
        /// A UUID.
        Uuid = "uuid",
        /// Digits, the first of them zeros.
        LeadingZeros = "leading-zeros",
    }
    /// Which orders `GET /api/oms/orders` lists: "the session's orders" (§4.5) has two readings.
    ListScope {
        /// Those placed with the same access token.
        #[default] LoginSession = "login-session",
        /// All of the user's.
        User = "user",
    }
    /// The effect of a login on the user's older tokens.
    OldToken {
        /// They live on.
        #[default] Lives = "lives",
        /// They die.
        Dies = "dies",
    }
    /// Whether a 429 says when to come back; the specification is silent.
    RetryAfter {
        /// No `Retry-After` header.
        #[default] Absent = "absent",
        /// The whole seconds until a request would be admitted.
        Seconds = "seconds",
        /// A number that nobody can mean.
        Absurd = "huge",
        /// A text that is neither a number nor a date.
        Garbage = "garbage",
    }
    /// How the texts of §7 are written.
    ErrorText {
        /// As §7 shows them.
        #[default] AsShown = "as-shown",
        /// With a space behind them.
        TrailingSpace = "trailing-space",
        /// In capitals.
        Capitals = "capitals",
    }
    /// Whether answers hold fields that the specification does not show, and errors a `d`.
    ExtraFields {
        /// They do not.
        #[default] None = "none",
        /// They do.
        Present = "present",
    }
    /// How much later than it is applied an order is listed, at the most; each order has a delay of its own.
    VisibilityLag {
        /// At once.
        #[default] None = "none",
        /// Up to 200 ms.
        Short = "200ms",
        /// Up to a second.
        Second = "1s",
        /// Up to five seconds.
        FiveSeconds = "5s",
        /// Up to fifteen seconds.
        FifteenSeconds = "15s",
    }
    /// Whether rejected orders are listed.
    RejectedOrders {
        /// They are.
        #[default] Kept = "kept",
        /// They are not.
        Dropped = "dropped",
    }
    /// The part of an order's `remarks` that records of the list show: the specification has no such field.
    Remarks {
        /// Nothing.
        #[default] Absent = "none",
        /// All of it.
        Full = "full",
        /// The first eight characters.
        Cut = "truncated",
        /// All of it, but nothing for intraday orders.
        SomeClasses = "dropped",
        /// All of it, in capitals.
        Capitals = "upper-cased",
        /// All of it; three in ten orders show that of the order before them instead, and exit legs that of their order.
        Copied = "copied",
    }
    /// How a login's `expires_in` is written.
    ExpiresIn {
        /// As a number of seconds.
        #[default] Number = "number",
        /// As a text with that number.
        Text = "text",
        /// As five minutes, although the token lives for a day.
        Short = "short",
    }
}

macro_rules! axes {
    ($($number:literal $field:ident $name:literal: $choice:ident,)+) => {
        /// One reading of what the specification leaves open. The default is the sandbox's own reading.
        ///
        /// # Example
        ///
        /// ```
        /// use steadfast_sandbox::{SpecReading, Sandbox};
        ///
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// let mut reading = SpecReading::default();
        /// reading.set("order-ids", "uuid")?;
        /// reading.set("no-data", "404")?;
        /// assert!(reading.counts_as_documented());
        /// let sandbox = Sandbox::builder().interpretation(reading).build()?;
        /// # drop(sandbox);
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each field is its type's only use, and the type says what it decides")]
        pub struct SpecReading {
            $(pub $field: $choice,)+
        }

        impl SpecReading {
            /// Every axis with the names of its values, the default first.
            pub const AXES: &'static [Axis] = &[
                $(Axis { number: $number, name: $name, values: <$choice as Choice>::NAMES },)+
            ];

            /// Draws a reading axis by axis: `choose(site, n)` returns a number below `n`, and 0 is the default.
            ///
            /// The sites are `axis.` followed by the axis' name, in the order of [`AXES`](Self::AXES).
            pub fn drawn(mut choose: impl FnMut(&'static str, u32) -> u32) -> Self {
                Self { $($field: Choice::nth(choose(concat!("axis.", $name), <$choice as Choice>::NAMES.len() as u32)),)+ }
            }

            /// Sets one axis to the value with this name.
            ///
            /// # Errors
            ///
            /// [`InvalidAxis`] naming the valid choices.
            pub fn set(&mut self, axis: &str, value: &str) -> Result<(), InvalidAxis> {
                match axis {
                    $($name => self.$field = Choice::named(value)
                        .ok_or(InvalidAxis::Value($name, <$choice as Choice>::NAMES))?,)+
                    _ => return Err(InvalidAxis::Axis(axis.chars().take(80).collect())),
                }
                Ok(())
            }

            /// Returns the value of every axis by name, in the order of [`AXES`](Self::AXES).
            #[must_use]
            pub fn values(&self) -> Vec<(&'static str, &'static str)> {
                vec![$(($name, self.$field.name()),)+]
            }
        }
    };
}

axes! {
    1 list_zone "list-zone": ListZone,
    2 order_zone "order-zone": OrderZone,
    3 refused "refused": Refused,
    4 counting "counting": Counting,
    5 json_body "json-body": JsonBody,
    6 ip_refusal "ip-refusal": IpRefusal,
    7 no_data "no-data": NoDataStatus,
    8 list_shows "list-shows": ListShows,
    9 list_order "list-order": ListOrder,
    10 prices "prices": Prices,
    11 quantity "quantity": Quantity,
    12 order_ids "order-ids": OrderIds,
    13 list_scope "list-scope": ListScope,
    14 old_token "old-token": OldToken,
    15 retry_after "retry-after": RetryAfter,
    16 error_text "error-text": ErrorText,
    17 extra_fields "extra-fields": ExtraFields,
    18 visibility_lag "visibility-lag": VisibilityLag,
    19 rejected "rejected": RejectedOrders,
    20 expires_in "expires-in": ExpiresIn,
    21 remarks "remarks": Remarks,
}

/// One question that the specification leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Axis {
    /// Its number in the list of axes.
    pub number: u8,
    /// Its name on the command line, in scripts and in reports.
    pub name: &'static str,
    /// The names of its values, the default first.
    pub values: &'static [&'static str],
}

impl SpecReading {
    /// Returns true if the gateway counts as its table of zones says, and no 429 is misleading: axes 1-4 and 15 have
    /// their defaults. Only then can a client be required to meet no 429.
    #[must_use]
    pub fn counts_as_documented(&self) -> bool {
        let plain = Self::default();
        (self.list_zone, self.order_zone, self.refused, self.counting)
            == (plain.list_zone, plain.order_zone, plain.refused, plain.counting)
            && self.retry_after == plain.retry_after
    }
}

impl Counting {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::SlidingLog => Kind::SlidingLog,
            Self::Fixed => Kind::FixedWindow { phase: std::time::Duration::ZERO },
            Self::FirstHit => Kind::FirstHit,
            Self::SlidingCounter => Kind::SlidingCounter { phase: std::time::Duration::ZERO },
            Self::TokenBucket => Kind::TokenBucket,
            Self::WholeSecond => Kind::WholeSecond,
        }
    }
}

impl VisibilityLag {
    pub(crate) fn most(self) -> std::time::Duration {
        std::time::Duration::from_millis(match self {
            Self::None => 0,
            Self::Short => 200,
            Self::Second => 1_000,
            Self::FiveSeconds => 5_000,
            Self::FifteenSeconds => 15_000,
        })
    }
}

/// An axis or a value of one that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidAxis {
    /// There is no such axis.
    Axis(String),
    /// The axis has no such value.
    Value(&'static str, &'static [&'static str]),
}

impl fmt::Display for InvalidAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Axis(name) => {
                let names: Vec<_> = SpecReading::AXES.iter().map(|axis| axis.name).collect();
                write!(f, "no axis is named {name:?}; there are {}", names.join(", "))
            }
            Self::Value(axis, values) => write!(f, "{axis} is one of {}", values.join(", ")),
        }
    }
}

impl Error for InvalidAxis {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_of_zeros_is_the_default_and_each_axis_is_asked_once() {
        let mut asked = Vec::new();
        let drawn = SpecReading::drawn(|site, n| {
            asked.push((site, n));
            0
        });
        assert_eq!(drawn, SpecReading::default());
        let axes: Vec<_> = SpecReading::AXES.iter().map(|axis| axis.values.len() as u32).collect();
        assert_eq!(asked.iter().map(|(_, n)| *n).collect::<Vec<_>>(), axes);
        assert!(asked.iter().zip(SpecReading::AXES).all(|((site, _), axis)| site[5..] == *axis.name));
        let numbers: Vec<u8> = SpecReading::AXES.iter().map(|axis| axis.number).collect();
        assert_eq!(numbers, (1..=21).collect::<Vec<u8>>());
    }

    #[test]
    fn every_value_of_every_axis_is_set_by_its_name() {
        for axis in SpecReading::AXES {
            for value in axis.values {
                let mut reading = SpecReading::default();
                reading.set(axis.name, value).unwrap();
                assert!(reading.values().contains(&(axis.name, value)));
                assert_eq!(reading == SpecReading::default(), *value == axis.values[0]);
            }
        }
        let mut reading = SpecReading::default();
        assert!(reading.set("colour", "red").unwrap_err().to_string().contains("there are list-zone"));
        assert_eq!(reading.set("refused", "x").unwrap_err().to_string(), "refused is one of free, counted");
    }
}
