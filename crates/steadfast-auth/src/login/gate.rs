use std::future::Future;

use http::{HeaderMap, StatusCode};
use steadfast_call::{BoxError, Lane};
use steadfast_spec::Zone;

/// Admits logins to their rate-limit zones.
///
/// Logins do not pass the limiter of the business calls. They take their permits here, *then* read a fresh code and
/// build the form. The program that builds the stack implements this trait with its limiter.
pub trait Gate: Send + Sync + 'static {
    /// The permit that is held while the request is on its way.
    type Permit: GatePermit;

    /// Waits until every zone admits one request.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves neither a permit nor a waiter behind.
    fn acquire(
        &self,
        zones: &[Zone],
        lane: Lane,
    ) -> impl Future<Output = Result<Self::Permit, BoxError>> + Send;
}

/// The right to send one request. If dropped before [`sent`](GatePermit::sent) it is given back unspent; if dropped
/// after it, the answer counts as lost.
pub trait GatePermit: Send + 'static {
    /// The request is about to leave.
    fn sent(&mut self);

    /// The head of its answer came.
    fn answered(&mut self, status: StatusCode, headers: &HeaderMap);
}

/// Admits everything at once. For programs that log in once and limit nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    type Permit = ();

    async fn acquire(&self, _: &[Zone], _: Lane) -> Result<(), BoxError> {
        Ok(())
    }
}

impl GatePermit for () {
    fn sent(&mut self) {}

    fn answered(&mut self, _: StatusCode, _: &HeaderMap) {}
}
