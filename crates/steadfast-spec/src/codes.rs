use std::{error::Error, fmt, str::FromStr};

/// A value that is not one of a field's codes (§2): codes are lowercase and case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCode {
    field: &'static str,
    allowed: &'static [&'static str],
}

impl UnknownCode {
    /// Returns the field's name in forms and records.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not one of {}", self.field, self.allowed.join(", "))
    }
}

impl Error for UnknownCode {}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident, $field:literal { $($(#[$vdoc:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl $name {
            /// The field's name in forms and records.
            pub const FIELD: &'static str = $field;

            /// Every value, in the order of §2.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the code on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownCode;

            fn from_str(code: &str) -> Result<Self, UnknownCode> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(UnknownCode { field: $field, allowed: &[$($code),+] }),
                }
            }
        }
    };
}

codes! {
    /// The direction of an order (§2).
    Side, "side" {
        /// `buy`
        Buy = "buy",
        /// `sell`
        Sell = "sell",
    }
}

codes! {
    /// The price type of an order (§2).
    OrderType, "type" {
        /// `limit`: needs `limitPrice`.
        Limit = "limit",
        /// `market`
        Market = "market",
        /// `stoplimit`: needs `limitPrice` and `trigPrice`.
        StopLimit = "stoplimit",
        /// `stopmarket`: needs `trigPrice`.
        StopMarket = "stopmarket",
    }
}

impl OrderType {
    /// True if an order of this type must carry `limitPrice` (§4.4).
    #[must_use]
    pub const fn needs_limit_price(self) -> bool {
        matches!(self, Self::Limit | Self::StopLimit)
    }

    /// True if an order of this type must carry `trigPrice` (§4.4).
    #[must_use]
    pub const fn needs_trig_price(self) -> bool {
        matches!(self, Self::StopLimit | Self::StopMarket)
    }
}

codes! {
    /// The product, or margin type, of an order (§2).
    Product, "product" {
        /// `delivery`
        Delivery = "delivery",
        /// `intraday`
        Intraday = "intraday",
        /// `normal`
        Normal = "normal",
        /// `cover`
        Cover = "cover",
        /// `bracket`
        Bracket = "bracket",
    }
}

codes! {
    /// How long an order stands (§2).
    Validity, "validity" {
        /// `day`
        Day = "day",
        /// `ioc`: immediate or cancel.
        Ioc = "ioc",
        /// `eos`: end of session, BSE only.
        Eos = "eos",
        /// `gtc`: good till cancelled.
        Gtc = "gtc",
    }
}

codes! {
    /// The status of an order in the order book (§2, §3).
    OrderStatus, "status" {
        /// `open`
        Open = "open",
        /// `completed`
        Completed = "completed",
        /// `rejected`
        Rejected = "rejected",
        /// `cancelled`
        Cancelled = "cancelled",
    }
}

codes! {
    /// The leg of a bracket or cover order (§2).
    LegType, "legType" {
        /// `main`
        Main = "main",
        /// `stoploss`
        StopLoss = "stoploss",
        /// `target`
        Target = "target",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trips<T: Copy + fmt::Debug + PartialEq + FromStr<Err = UnknownCode>>(
        all: &[T],
        code: fn(T) -> &'static str,
    ) {
        for &value in all {
            assert_eq!(code(value).parse::<T>(), Ok(value));
            for near_miss in
                [code(value).to_uppercase(), format!(" {}", code(value)), code(value)[..2].to_owned()]
            {
                assert!(near_miss.parse::<T>().is_err(), "{near_miss:?} was taken for {value:?}");
            }
        }
    }

    #[test]
    fn every_code_round_trips_and_its_near_misses_are_refused() {
        round_trips(Side::ALL, Side::as_str);
        round_trips(OrderType::ALL, OrderType::as_str);
        round_trips(Product::ALL, Product::as_str);
        round_trips(Validity::ALL, Validity::as_str);
        round_trips(OrderStatus::ALL, OrderStatus::as_str);
        round_trips(LegType::ALL, LegType::as_str);
    }

    #[test]
    fn the_error_names_the_field_and_not_the_value() {
        let error = "cnc".parse::<Product>().unwrap_err();
        assert_eq!(error.to_string(), "product is not one of delivery, intraday, normal, cover, bracket");
    }
}
