use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;

use crate::place::observe::{Listener, ObservedBody};

pin_project! {
    /// The service's own body, unchanged, or one made from the content of the order list.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        inner: Inner<B>,
    }
}

pin_project! {
    #[project = InnerProj]
    #[derive(Debug)]
    enum Inner<B> {
        Service { #[pin] body: B },
        Made { #[pin] body: Full<Bytes> },
        Observed { #[pin] body: ObservedBody<B> },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn service(body: B) -> Self {
        Self { inner: Inner::Service { body } }
    }

    pub(crate) fn made(bytes: Bytes) -> Self {
        Self { inner: Inner::Made { body: Full::new(bytes) } }
    }
}

impl<B: Body<Data = Bytes>> ResponseBody<B> {
    pub(crate) fn observed(body: B, listener: Box<Listener>) -> Self {
        Self { inner: Inner::Observed { body: ObservedBody::new(body, listener) } }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().inner.project() {
            InnerProj::Service { body } => body.poll_frame(cx),
            InnerProj::Made { body } => body.poll_frame(cx).map_err(|never| match never {}),
            InnerProj::Observed { body } => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Service { body } => body.is_end_stream(),
            Inner::Made { body } => body.is_end_stream(),
            Inner::Observed { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Service { body } => body.size_hint(),
            Inner::Made { body } => body.size_hint(),
            Inner::Observed { body } => body.size_hint(),
        }
    }
}
