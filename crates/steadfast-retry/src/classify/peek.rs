use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame};
use steadfast_call::{Outcome, Peek, outcome_of};
use steadfast_spec::{Endpoint, Envelope};

use crate::{
    classify::peeked_body::PeekedBody,
    collect::{CollectEnd, Collecting},
};

/// How much of a body is held in memory to decide what an answer proves: 16 KiB.
///
/// The answers concerned are a few hundred bytes long. A longer body is none of them.
pub const PEEK_LIMIT: usize = 16 * 1024;

/// True if the outcome depends on the body: for every 400, for the 200s, 4xx and 5xx of a place-order, and for the 4xx
/// of all else that moves money.
pub(crate) fn decides_by_body(endpoint: Option<Endpoint>, status: StatusCode) -> bool {
    match status {
        StatusCode::BAD_REQUEST => true,
        StatusCode::OK => endpoint == Some(Endpoint::PlaceOrder),
        // The body says whether this is the gateway's own word.
        status if status.is_client_error() => endpoint.is_some_and(Endpoint::moves_money),
        status if status.is_server_error() => endpoint == Some(Endpoint::PlaceOrder),
        _ => false,
    }
}

/// Returns the outcome of an answer with this collected body, whether it is a 200 that says `error`, and the body as
/// it came.
pub(crate) fn judge<B: Body<Data = Bytes>>(
    endpoint: Option<Endpoint>,
    status: StatusCode,
    collected: Collecting<B>,
    end: CollectEnd<B::Error>,
) -> (Outcome, bool, PeekedBody<B>) {
    let Collecting { frames, rest, held, .. } = collected;
    let whole = |body: &[u8]| {
        let outcome = outcome_of(endpoint, status, Peek::Whole(body));
        let says_error = || matches!(Envelope::parse(body), Ok(Envelope::Error { .. }));
        let denied = status == StatusCode::OK && outcome.is_unknown() && says_error();
        (outcome, denied)
    };
    match end {
        CollectEnd::Whole => {
            let mut data = frames.iter().filter_map(Frame::data_ref);
            // Usually there is one frame, and nothing is copied.
            let (outcome, denied) = match (data.next(), data.next()) {
                (None, _) => whole(&[]),
                (Some(only), None) => whole(only),
                (Some(_), Some(_)) => {
                    let mut all = Vec::with_capacity(held);
                    frames.iter().filter_map(Frame::data_ref).for_each(|data| all.extend_from_slice(data));
                    whole(&all)
                }
            };
            (outcome, denied, PeekedBody::ended(frames))
        }
        CollectEnd::TooLong => {
            (outcome_of(endpoint, status, Peek::Unreadable), false, PeekedBody::more(frames, rest))
        }
        CollectEnd::Failed(error) => {
            (outcome_of(endpoint, status, Peek::Unreadable), false, PeekedBody::failed(frames, error))
        }
    }
}
