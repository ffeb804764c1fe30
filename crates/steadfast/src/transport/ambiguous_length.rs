use http::{Response, header};

/// An answer gives its length twice.
///
/// hyper goes by the second header, an intermediary may go by the first (RFC 9112, 6.3). Then bytes are assigned to the
/// wrong answers, and neither this answer nor any later one on the connection can be trusted.
pub(super) const AMBIGUOUS_LENGTH: &str = "the answer has both a content-length and a transfer-encoding";

/// Returns true if an answer gives its length twice.
pub(super) fn has_ambiguous_length<B>(response: &Response<B>) -> bool {
    let headers = response.headers();
    headers.contains_key(header::CONTENT_LENGTH) && headers.contains_key(header::TRANSFER_ENCODING)
}
