use std::fmt;

use http::Response;
use steadfast_call::{BoxError, Class, Failure, Outcome, RetryAfter, ext, outcome_of_status};

use crate::{ending::Ending, error::RetriesEnded, rules::Observation};

/// The result of the last send.
pub(crate) struct LastResult {
    pub(crate) outcome: Outcome,
    pub(crate) observation: Observation,
    /// True if another policy has already spent its repeats on it.
    pub(crate) is_final: bool,
}

impl LastResult {
    pub(crate) fn read<R>(class: Class, result: &Result<Response<R>, BoxError>) -> Self {
        match result {
            Ok(response) => {
                let status = response.status();
                let extensions = response.extensions();
                let outcome =
                    Outcome::of(extensions).cloned().unwrap_or_else(|| outcome_of_status(class, status));
                Self {
                    observation: Observation {
                        ending: Ending::of(&outcome, Some(status), false),
                        status: Some(status),
                        retry_after: RetryAfter::parse(response.headers()).map(|asked| asked.0),
                    },
                    outcome,
                    is_final: extensions.get::<ext::DoNotRetry>().is_some(),
                }
            }
            Err(error) => Self::of_error(error),
        }
    }

    pub(crate) fn of_error(error: &BoxError) -> Self {
        let outcome = Failure::outcome_of(&**error);
        let refused = Failure::find(&**error).is_some_and(Failure::is_refusal);
        Self {
            observation: Observation {
                ending: Ending::of(&outcome, None, refused),
                status: None,
                retry_after: None,
            },
            outcome,
            is_final: RetriesEnded::find(&**error).is_some(),
        }
    }
}

/// Stands in for a result whose body is being drained. It never reaches a caller.
#[derive(Debug)]
pub(crate) struct Superseded;

impl fmt::Display for Superseded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("answer superseded by a repeat")
    }
}

impl std::error::Error for Superseded {}

/// Replaces an error by one made from it.
pub(crate) fn replace(error: &mut BoxError, make: impl FnOnce(BoxError) -> BoxError) {
    let source = std::mem::replace(error, Superseded.into());
    *error = make(source);
}
