use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame};
use steadfast_spec::{Endpoint, Outcome, Peek, outcome_of};

use crate::{
    PeekedBody,
    collect::{CollectEnd, Collecting},
};

/// How much of a body is held in memory to decide what an answer proves: 16 KiB.
///
/// The answers that are looked into are a few hundred bytes long; one that is longer than this is not theirs.
pub const PEEK_LIMIT: usize = 16 * 1024;

/// True if what the answer proves depends on its body: every 400, and the 200 of a place-order.
pub(crate) fn decides_by_body(endpoint: Option<Endpoint>, status: StatusCode) -> bool {
    match status {
        StatusCode::BAD_REQUEST => true,
        StatusCode::OK => endpoint == Some(Endpoint::PlaceOrder),
        _ => false,
    }
}

/// What an answer proves whose body was collected to this end, and the body as it came.
pub(crate) fn judge<B: Body<Data = Bytes>>(
    endpoint: Option<Endpoint>,
    status: StatusCode,
    collected: Collecting<B>,
    end: CollectEnd<B::Error>,
) -> (Outcome, PeekedBody<B>) {
    let Collecting { frames, rest, held, .. } = collected;
    match end {
        CollectEnd::Whole => {
            let mut data = frames.iter().filter_map(Frame::data_ref);
            // One frame is the rule, and then nothing is copied.
            let outcome = match (data.next(), data.next()) {
                (None, _) => outcome_of(endpoint, status, Peek::Whole(&[])),
                (Some(only), None) => outcome_of(endpoint, status, Peek::Whole(only)),
                (Some(_), Some(_)) => {
                    let mut whole = Vec::with_capacity(held);
                    frames.iter().filter_map(Frame::data_ref).for_each(|data| whole.extend_from_slice(data));
                    outcome_of(endpoint, status, Peek::Whole(&whole))
                }
            };
            (outcome, PeekedBody::ended(frames))
        }
        CollectEnd::TooLong => {
            (outcome_of(endpoint, status, Peek::Unreadable), PeekedBody::more(frames, rest))
        }
        CollectEnd::Failed(error) => {
            (outcome_of(endpoint, status, Peek::Unreadable), PeekedBody::failed(frames, error))
        }
    }
}
