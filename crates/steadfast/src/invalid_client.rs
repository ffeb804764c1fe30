use std::{error::Error as StdError, fmt};

use http::HeaderName;
use steadfast_dedup::journal::JournalError;
use steadfast_limit::InvalidLimiter;
use steadfast_spec::{Endpoint, InvalidBaseUrl, InvalidOperation, Zone, zones};

use crate::{error::chain_of, transport::TlsUnavailable};

/// Why a client cannot be built.
#[derive(Clone)]
#[non_exhaustive]
pub enum InvalidClient {
    /// The base address is clear-text http to another machine: the token would travel in the open.
    ClearText,
    /// The base address is clear-text http, and a proxy is set: it would read the token.
    ClearTextThroughProxy,
    /// A header for all requests is one that the layers write.
    OwnHeader(HeaderName),
    /// The base address cannot hold the login's path.
    BaseUrl(InvalidBaseUrl),
    /// The path set for an endpoint that the specification leaves open is not a valid path.
    Path(InvalidOperation),
    /// The given routes do not know the path that is set for this endpoint: its requests would wait, and be repeated, as those of
    /// an unknown path. Begin with [`Routes::new`](steadfast_call::Routes::new) of the same paths.
    Unrouted(Endpoint),
    /// The path template of a route is not of the form `/a/{b}`, below the base address: no request would match it.
    Template(String),
    /// A route, named by method and path template, falls under a zone that the limits do not have: each of its requests
    /// would be refused.
    NoLimitOf {
        /// The zone.
        zone: Zone,
        /// The route's method and path template.
        route: String,
    },
    /// A route, named by method and path template, falls under no zone: each of its requests would be refused.
    NoZone(String),
    /// TLS connections cannot be made.
    Tls(TlsUnavailable),
    /// The journal cannot be used.
    Journal(JournalError),
    /// The file of spent limits beside the stored token cannot be used.
    Limits(InvalidLimiter),
    /// Limits are given, and other processes to count with: given limits count with others by themselves.
    SharedLimiter,
    /// Orders that processes share are given, and another account, a journal or a tracker.
    SharedOrders,
}

impl fmt::Display for InvalidClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClearText => f.write_str("base url is clear-text http to another machine"),
            Self::ClearTextThroughProxy => f.write_str("base url is clear-text http, and a proxy is set"),
            Self::OwnHeader(name) => write!(f, "header {name} is not for the caller to set"),
            Self::BaseUrl(error) => error.fmt(f),
            Self::Path(error) => error.fmt(f),
            Self::Unrouted(endpoint) => {
                write!(f, "routes lack the path of {}: begin with `Routes::new(&paths)`", endpoint.as_str())
            }
            Self::Template(template) => {
                write!(f, "path {template:?} of a route is not of the form /a/{{b}}, percent-encoded")
            }
            Self::NoLimitOf { zone, route } => {
                write!(f, "limits lack zone {zone}, which {route} falls under")?;
                let is_preset = zones().iter().any(|preset| preset.zone == *zone);
                f.write_str(if is_preset { ": begin with `ZoneLimiter::builder().preset()`" } else { "" })
            }
            Self::NoZone(route) => write!(f, "route {route} falls under no zone"),
            Self::Tls(error) => f.write_str(&chain_of(error)),
            Self::Journal(error) => f.write_str(&chain_of(error)),
            Self::Limits(error) => error.fmt(f),
            Self::SharedOrders => f.write_str(
                "shared orders are given, and another account, a journal or a tracker: they have their own",
            ),
            Self::SharedLimiter => f.write_str(
                "limits are given, and processes to count with: set `Builder::count_with` of the limits",
            ),
        }
    }
}

reads_like_display!(InvalidClient);

impl StdError for InvalidClient {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // `Display` shows the wrapped error, so its own source comes next.
        match self {
            Self::Journal(error) => error.source(),
            Self::Tls(error) => error.source(),
            Self::ClearText
            | Self::ClearTextThroughProxy
            | Self::OwnHeader(_)
            | Self::BaseUrl(_)
            | Self::Path(_)
            | Self::Unrouted(_)
            | Self::Template(_)
            | Self::NoLimitOf { .. }
            | Self::NoZone(_)
            | Self::Limits(_)
            | Self::SharedLimiter
            | Self::SharedOrders => None,
        }
    }
}
