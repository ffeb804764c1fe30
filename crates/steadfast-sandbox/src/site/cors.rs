use std::{error::Error, fmt, str::FromStr};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};

/// An origin of which the web pages may call the gateway, such as `http://localhost:3000`; `*` is any.
///
/// Without one, a browser lets no page read an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

/// The origin of a page that asks, which may read the answer.
#[derive(Clone, Debug)]
pub(crate) struct Asked(HeaderValue);

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let uri: Option<Uri> = text.parse().ok();
        let is_origin = uri.is_some_and(|uri| {
            let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
            text == format!("{scheme}://{authority}") && !authority.as_str().contains('@')
        });
        let value = HeaderValue::from_str(text).map_err(|_| InvalidOrigin)?;
        if text == "*" || is_origin { Ok(Self(value)) } else { Err(InvalidOrigin) }
    }
}

impl Origin {
    /// Answers a browser that asks whether a page may send a request; `None` if it does not ask, or may not.
    pub(crate) fn preflight<B>(&self, request: &Request<B>) -> Option<Response<()>> {
        let headers = request.headers();
        if request.method() != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let asked = self.asked(request)?;
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let allowed = response.headers_mut();
        self.share(&asked, allowed);
        allowed
            .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
        // `*` would leave out `Authorization`.
        if let Some(names) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            allowed.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        Some(response)
    }

    /// Returns the origin that a request names, if it is allowed.
    pub(crate) fn asked<B>(&self, request: &Request<B>) -> Option<Asked> {
        let named = request.headers().get(header::ORIGIN)?;
        (self.0 == "*" || *named == self.0).then(|| Asked(named.clone()))
    }

    /// Lets the page that asked read an answer and its headers.
    pub(crate) fn share(&self, Asked(origin): &Asked, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("date, retry-after"));
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// The text is neither an origin, as `http://localhost:3000` is, nor `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidOrigin;

impl fmt::Display for InvalidOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an origin is scheme://host[:port], or * for all")
    }
}

impl Error for InvalidOrigin {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_and_host_and_nothing_else() {
        for good in ["*", "http://localhost:3000", "https://app.example", "http://127.0.0.1"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "localhost:3000",
            "http://localhost:3000/",
            "http://a@b",
            "http://",
            "null",
            "**",
            "http://a b",
        ] {
            assert_eq!(bad.parse::<Origin>(), Err(InvalidOrigin), "{bad}");
        }
    }
}
