use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full};
use steadfast_dedup::{RESOLUTION_HEADER, Resolution};
use steadfast_spec::{Endpoint, Form, OrderChange};

use super::{Body, Client};
use crate::error::Error;

/// Sending requests of other programs.
impl Client {
    /// Sends a request as [`raw`](Self::raw) does, in the protocol of its endpoint.
    pub(super) async fn forward_request(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, Error> {
        let path = self.address.base.strip(request.uri());
        match path.and_then(|path| self.address.paths.find(request.method(), path)) {
            Some(Endpoint::CancelOrder) => {
                let query = Form::parse(request.uri().query().unwrap_or_default().as_bytes());
                let order_id = query.map_err(Error::invalid)?.get("orderId").unwrap_or_default().to_owned();
                let answer = self.send_cancel(&order_id, request).await?;
                Ok(whole(answer.unwrap_or_else(|| found(&order_id))))
            }
            Some(Endpoint::ModifyOrder) => {
                let (parts, body) = request.into_parts();
                let form =
                    body.collect().await.map(|body| body.to_bytes()).unwrap_or_else(|never| match never {});
                let fields = Form::parse(&form).map_err(Error::invalid)?;
                let (order_id, change) = OrderChange::from_fields(fields.iter()).map_err(Error::invalid)?;
                let request = Request::from_parts(parts, Full::from(form));
                let answer = self.send_change(&order_id, &change, request).await?;
                Ok(whole(answer.unwrap_or_else(|| found(&order_id))))
            }
            _ => self.raw(request).await,
        }
    }
}

/// Makes the answer that the service would have given, of what the list shows.
fn found(order_id: &str) -> Response<Bytes> {
    const RECOVERED: &str = "recovered";
    let envelope = serde_json::json!({"s": "ok", "d": {"orderId": order_id, "msg": RECOVERED}}).to_string();
    let mut response = Response::new(Bytes::from(envelope));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static(RESOLUTION_HEADER), HeaderValue::from_static(RECOVERED));
    let resolution = Resolution::Recovered { order_id: order_id.to_owned(), status: None };
    response.extensions_mut().insert(resolution);
    response
}

fn whole(response: Response<Bytes>) -> Response<Body> {
    response.map(|body| Body::new(Full::new(body).map_err(|never| match never {})))
}
