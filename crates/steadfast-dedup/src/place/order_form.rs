//! Reads an order from the form of its request.

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use steadfast_call::BoxError;
use steadfast_spec::{Form, OrderRequest};

use crate::error::OrderWithheld;

/// No order's form is longer.
const BODY_CAP: usize = 64 * 1024;

pub(crate) async fn read_form<B>(body: B) -> Result<Bytes, OrderWithheld>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = std::pin::pin!(Limited::new(body, BODY_CAP));
    let first = match body.as_mut().frame().await {
        Some(frame) => frame.map_err(|_| OrderWithheld::UnreadableBody)?.into_data().unwrap_or_default(),
        None => return Ok(Bytes::new()),
    };
    // Most forms come in one piece, which is passed on as it is.
    if body.is_end_stream() {
        return Ok(first);
    }
    let rest = body.collect().await.map_err(|_| OrderWithheld::UnreadableBody)?.to_bytes();
    Ok(if rest.is_empty() { first } else { [first, rest].concat().into() })
}

/// Reads an order from its form. An order that could not be recognised in the list is withheld.
pub(crate) fn read_order(form: &[u8]) -> Result<OrderRequest, OrderWithheld> {
    if let Some(fields) = plain_fields(form) {
        return OrderRequest::from_fields(fields).map_err(OrderWithheld::InvalidOrder);
    }
    let form = Form::parse(form).map_err(OrderWithheld::MalformedForm)?;
    OrderRequest::from_fields(form.iter()).map_err(OrderWithheld::InvalidOrder)
}

/// Returns the fields of a form without escapes, without copying; `None` if the full parser must decide.
fn plain_fields(form: &[u8]) -> Option<impl Iterator<Item = (&str, &str)>> {
    let plain = form.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'+'));
    let text = std::str::from_utf8(form).ok().filter(|_| plain)?;
    let named = |pair: &[u8]| pair.iter().position(|&byte| byte == b'=').is_some_and(|at| at > 0);
    let whole = form.split(|&byte| byte == b'&').all(named);
    whole.then(|| text.split('&').filter_map(|pair| pair.split_once('=')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body in given frames.
    struct Pieces(std::collections::VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
            std::task::Poll::Ready(self.0.pop_front().map(|piece| Ok(http_body::Frame::data(piece))))
        }
    }

    #[tokio::test]
    async fn a_form_in_pieces_is_one_form() {
        for cut in [0, 1, 4, 9] {
            let (first, second) = b"qty=1&a=b".split_at(cut);
            let pieces = Pieces([first, second].map(Bytes::from_static).into());
            assert_eq!(read_form(pieces).await.unwrap(), "qty=1&a=b");
        }
        let long = http_body_util::Full::from(vec![b'x'; BODY_CAP + 1]);
        assert!(read_form(long).await.is_err());
        assert_eq!(read_form(http_body_util::Empty::new()).await.unwrap(), "");
    }

    #[test]
    fn the_short_way_reads_what_the_careful_way_reads() {
        let order = "symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";
        for form in [
            order.to_owned(),
            order.replace("symId=S", "symId=S%20T"),
            order.replace("symId=S", "symId=S+T"),
            order.replace("symId=S", "symId=S=T"),
            format!("{order}&tag=x"),
            format!("{order}&qty=2"),
            format!("{order}&&"),
            format!("{order}&=x"),
            format!("{order}&lonely"),
            format!("{order}&tag="),
            String::new(),
        ] {
            let careful = Form::parse(form.as_bytes())
                .map_err(|error| error.to_string())
                .and_then(|form| OrderRequest::from_fields(form.iter()).map_err(|error| error.to_string()));
            let read = read_order(form.as_bytes()).map_err(|error| match error {
                OrderWithheld::MalformedForm(error) => error.to_string(),
                OrderWithheld::InvalidOrder(error) => error.to_string(),
                other => other.to_string(),
            });
            assert_eq!(read, careful, "{form}");
        }
    }
}
