use steadfast_spec::Endpoint;

/// The rule for repeating a request when it is unknown whether it was executed.
///
/// The class follows from the request's route, never from its method alone or from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Executing it twice has the effect of once. It may be repeated after any transient failure.
    Safe,
    /// Executing it twice costs money. In doubt it is looked for in the order list, never blindly repeated.
    VerifyFirst,
    /// It may be repeated with a new body, because the old one holds a used code.
    Regenerate,
    /// It may be repeated only if it was certainly not executed. If a refusal cannot be checked, only if it was not
    /// sent ([`Route::is_unverifiable`](crate::Route::is_unverifiable)).
    OnlyIfNotExecuted,
}

impl Class {
    /// Returns the class of an endpoint.
    #[must_use]
    pub const fn of(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::PlaceOrder => Self::VerifyFirst,
            Endpoint::IndividualToken => Self::Regenerate,
            // The authorization code is single-use, and a modification may have been overtaken by another.
            Endpoint::Token | Endpoint::ModifyOrder | Endpoint::Logout => Self::OnlyIfNotExecuted,
            special if special.is_special() => Self::OnlyIfNotExecuted,
            _ => Self::Safe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_place_order_is_verified_before_it_is_repeated() {
        let verified: Vec<_> = Endpoint::all().filter(|e| Class::of(*e) == Class::VerifyFirst).collect();
        assert_eq!(verified, [Endpoint::PlaceOrder]);
    }
}
