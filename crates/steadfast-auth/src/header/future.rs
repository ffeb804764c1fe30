use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;
use steadfast_call::{
    BoxError, Failure,
    ext::{Sent, TokenGeneration},
};

use crate::token::TimeSample;

pin_project! {
    /// The response future of [`AuthHeader`](crate::AuthHeader).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<F> {
        Sent { #[pin] call: F, generation: Option<TokenGeneration>, sample: Option<TimeSample> },
        Refused { failure: Option<Failure> },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn sent(call: F, generation: Option<TokenGeneration>, sample: Option<TimeSample>) -> Self {
        Self { state: State::Sent { call, generation, sample } }
    }

    pub(super) fn refused(failure: Failure) -> Self {
        Self { state: State::Refused { failure: Some(failure) } }
    }
}

impl<F, ResBody, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<ResBody>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<ResBody>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Sent { call, generation, sample } => {
                let mut response = ready!(call.poll(cx)).map_err(Into::into)?;
                if let Some(generation) = *generation {
                    Sent::of_mut(response.extensions_mut()).set_generation(generation);
                }
                if let Some(sample) = sample.take() {
                    sample.end(&response);
                }
                Poll::Ready(Ok(response))
            }
            StateProj::Refused { failure } => {
                Poll::Ready(Err(failure.take().map_or_else(|| "polled after completion".into(), Into::into)))
            }
        }
    }
}
