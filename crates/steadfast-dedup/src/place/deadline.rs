use steadfast_call::Call;
use tokio::time::Instant;

/// Returns by when a call's caller wants an answer.
pub(crate) fn deadline(extensions: &http::Extensions) -> Option<Instant> {
    Call::of(extensions).deadline().map(Instant::from_std)
}

/// Returns the future's result; `None` if the deadline comes first.
pub(crate) async fn within<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}
