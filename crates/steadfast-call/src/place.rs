use std::fmt;

use http::Extensions;

use crate::{
    Call, Lane,
    ext::{Account, IntentId},
};

/// A layer's place in the stack, outermost first.
///
/// The order matters: a layer that may send a request more than once stands outside of layers that must act on every
/// send. Layers that are put together by hand mark the request with their places. A debug build panics at the first
/// request that passes two of them in the wrong order. A release build marks and checks nothing.
///
/// One layer alone, any selection of them, and the same layer twice are allowed. Other layers are not checked.
///
/// # Example
///
/// ```
/// use std::panic::AssertUnwindSafe;
///
/// use http::Extensions;
/// use steadfast_call::ext::Place;
///
/// let mut request = Extensions::new();
/// Place::Retry.pass(&mut request);
/// Place::RateLimit.pass(&mut request);
/// // What would stand inside of the rate limiter, so that a repeat would take no permit of its own:
/// let repeated = std::panic::catch_unwind(AssertUnwindSafe(|| Place::Retry.pass(&mut request)));
/// assert_eq!(repeated.is_err(), cfg!(debug_assertions));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Place {
    /// Sees everything that happens to a call.
    CallSpan,
    /// Stamps the deadlines that all waits further in observe.
    Deadline,
    /// Stamps the route for all layers further in.
    Route,
    /// Resolves orders in doubt: the outermost of the layers that send again.
    Dedup,
    /// Repeats requests that were certainly not executed, or that only read.
    Retry,
    /// Waits for a usable token; may send again once.
    Refresh,
    /// Every send takes a permit.
    RateLimit,
    /// Every send carries the token that is current at that moment.
    AuthHeader,
    /// Decides whether an order leaves.
    SendGuard,
    /// Stamps what an answer proves.
    Classify,
    /// Ends one send that takes too long.
    AttemptTimeout,
}

impl Place {
    /// All places, outermost first.
    pub const ALL: [Self; 11] = [
        Self::CallSpan,
        Self::Deadline,
        Self::Route,
        Self::Dedup,
        Self::Retry,
        Self::Refresh,
        Self::RateLimit,
        Self::AuthHeader,
        Self::SendGuard,
        Self::Classify,
        Self::AttemptTimeout,
    ];

    /// Returns the layer's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallSpan => "CallSpan",
            Self::Deadline => "Deadline",
            Self::Route => "Route",
            Self::Dedup => "Dedup",
            Self::Retry => "Retry",
            Self::Refresh => "Refresh",
            Self::RateLimit => "RateLimit",
            Self::AuthHeader => "AuthHeader",
            Self::SendGuard => "SendGuard",
            Self::Classify => "Classify",
            Self::AttemptTimeout => "AttemptTimeout",
        }
    }

    /// Marks a request as having passed this place. In a release build it does nothing.
    ///
    /// # Panics
    ///
    /// As [`check`](Self::check).
    #[inline]
    pub fn pass(self, request: &mut Extensions) {
        if cfg!(debug_assertions) {
            self.check(request);
            let call = Call::of_mut(request);
            call.set_passed(Passed(call.passed().0 | self.bit()));
        }
    }

    /// Checks a request that must not be changed, and leaves it unmarked. In a release build it does nothing.
    ///
    /// # Panics
    ///
    /// In a debug build, if the request has already passed a place further in, or holds a fact of its [`Call`] as an
    /// extension of its own, where no layer reads it.
    #[inline]
    pub fn check(self, request: &Extensions) {
        if cfg!(debug_assertions) {
            let astray = request.get::<Lane>().is_some()
                || request.get::<Account>().is_some()
                || request.get::<IntentId>().is_some();
            assert!(!astray, "a lane, an account or an intent belongs into the request's `Call`");
            let passed = Call::of(request).passed().0;
            let wrong = Self::ALL.into_iter().find(|place| *place > self && passed & place.bit() != 0);
            if let Some(outer) = wrong {
                panic!(
                    "{self} stands inside of {outer}: {self} must stand outside of {outer} (outer to inner: {})",
                    Self::ALL.map(Self::as_str).join(", ")
                );
            }
        }
    }

    /// Ends the stack, because the transport may pass the request on to another stack.
    #[inline]
    pub fn leave(request: &mut Extensions) {
        if cfg!(debug_assertions) {
            Call::of_mut(request).set_passed(Passed::NONE);
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The places that a request has passed on its way in. A clone keeps those passed so far, so a repeat knows only the
/// places outside of the repeating layer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed(u16);

impl Passed {
    pub(crate) const NONE: Self = Self(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_listed_as_they_are_ordered() {
        assert!(Place::ALL.is_sorted());
        assert_eq!(Place::ALL.map(|place| place as usize), std::array::from_fn(|at| at));
    }

    #[test]
    fn a_fact_outside_of_the_call_is_refused_in_debug_builds() {
        let mut request = Extensions::new();
        request.insert(IntentId::new("7"));
        let passed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Place::Dedup.pass(&mut request)));
        assert_eq!(passed.is_err(), cfg!(debug_assertions));
    }

    #[test]
    fn a_repeat_passes_again_what_stands_inside_of_whoever_repeats() {
        let mut request = Extensions::new();
        Place::Dedup.pass(&mut request);
        Place::Retry.pass(&mut request);
        let mut repeat = request.clone();
        Place::Classify.pass(&mut request);
        Place::Retry.pass(&mut repeat);
        Place::RateLimit.pass(&mut repeat);
        Place::leave(&mut request);
        Place::CallSpan.pass(&mut request);
    }
}
