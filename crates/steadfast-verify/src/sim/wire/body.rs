use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use crate::sim::wire::Broken;

/// The received part of an answer's body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    data: Option<Bytes>,
    broken: bool,
}

impl Body {
    /// Reads everything that the gateway sends before it ends or breaks off.
    pub(crate) async fn read(mut body: steadfast_sandbox::Body) -> Self {
        let mut data = Bytes::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Self { data: Some(data), broken: true } };
            let Ok(more) = frame.into_data() else { continue };
            if data.is_empty() {
                data = more;
            } else {
                let mut both = BytesMut::from(data);
                both.extend_from_slice(&more);
                data = both.freeze();
            }
        }
        Self { data: Some(data), broken: false }
    }

    /// Returns the body, unless it broke off.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.data.as_deref().filter(|_| !self.broken)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let data = self.data.take().filter(|data| !data.is_empty());
        Poll::Ready(match data {
            Some(data) => Some(Ok(Frame::data(data))),
            None => std::mem::take(&mut self.broken).then_some(Err(Broken::MidBody)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.data.as_ref().is_none_or(Bytes::is_empty) && !self.broken
    }

    fn size_hint(&self) -> SizeHint {
        let known = self.data.as_ref().map_or(0, Bytes::len) as u64;
        if self.broken { SizeHint::new() } else { SizeHint::with_exact(known) }
    }
}
