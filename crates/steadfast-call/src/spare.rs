use std::{borrow::Cow, fmt, sync::Arc};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, request};

use crate::{Call, Route, Routes};

/// The head of a request that may be sent again.
///
/// Nearly every call ends with its first send, so the head becomes a whole request only for a second one: the facts of
/// the [`Call`] are shared, and the caller's own headers and extensions are copied if there are any.
///
/// The [evidence](Call::send) of the first send is left out.
///
/// # Example
///
/// ```
/// use http::Request;
/// use steadfast_call::{Call, Lane, Spare};
///
/// let mut first = Request::get("https://api.example/v2/api/oms/orders").header("accept", "*/*").body(())?;
/// Call::of_mut(first.extensions_mut()).set_lane(Lane::Bulk);
///
/// let second = Spare::of(&first).with(());
/// assert_eq!(second.uri(), first.uri());
/// assert_eq!(second.headers(), first.headers());
/// assert_eq!(Call::of(second.extensions()).lane(), Some(Lane::Bulk));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone)]
pub struct Spare {
    method: Method,
    uri: Uri,
    version: Version,
    call: Call,
    /// A list, because a copy of a map takes three allocations, and most requests have one header or none.
    headers: Box<[(HeaderName, HeaderValue)]>,
    /// The caller's own, if there are any.
    extensions: Option<Extensions>,
}

impl Spare {
    /// Copies what a second send of `request` needs.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Self {
        let (headers, extensions) = (request.headers(), request.extensions());
        Self::new(request.method(), request.uri(), request.version(), headers, extensions)
    }

    /// The same for a head without its body.
    #[must_use]
    pub fn of_head(head: &request::Parts) -> Self {
        Self::new(&head.method, &head.uri, head.version, &head.headers, &head.extensions)
    }

    fn new(
        method: &Method,
        uri: &Uri,
        version: Version,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Self {
        let known = usize::from(extensions.get::<Call>().is_some());
        let mut own = Vec::with_capacity(headers.len());
        own.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        Self {
            method: method.clone(),
            uri: uri.clone(),
            version,
            call: Call::of(extensions).next_send(),
            headers: own.into(),
            extensions: (extensions.len() > known).then(|| extensions.clone()),
        }
    }

    /// Returns the facts of the call.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Returns the facts of the call, to be changed for the next send.
    pub fn call_mut(&mut self) -> &mut Call {
        &mut self.call
    }

    /// Returns the request's route, as [`Routes::of`] finds it.
    #[must_use]
    pub fn route(&self) -> Cow<'_, Arc<Route>> {
        Routes::or_shown(self.call.route(), &self.method, &self.uri)
    }

    /// Returns the request, with this body.
    #[must_use]
    pub fn with<B>(self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        request.headers_mut().extend(self.headers);
        if let Some(extensions) = self.extensions {
            *request.extensions_mut() = extensions;
        }
        *Call::of_mut(request.extensions_mut()) = self.call;
        request
    }
}

// An address may hold a code, and a header a secret.
impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("method", &self.method).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the facts hold the standard library's instants")]
mod tests {
    use std::time::Instant;

    use http::header::COOKIE;
    use steadfast_spec::Endpoint;

    use super::*;
    use crate::{
        Lane,
        ext::{Account, IntentId, Place, SendStamp, Sends, Ticket, TokenGeneration},
    };

    /// Returns a request with every fact, some headers, and an extension of the caller.
    fn of_a_call() -> Request<()> {
        let mut request = Request::post("https://api.example/v2/api/oms/orders").body(()).unwrap();
        *request.version_mut() = Version::HTTP_2;
        let mut secret = HeaderValue::from_static("secret");
        secret.set_sensitive(true);
        request.headers_mut().append(COOKIE, HeaderValue::from_static("one"));
        request.headers_mut().append(COOKIE, secret);
        request.extensions_mut().insert("the caller's own");
        Call::of_mut(request.extensions_mut())
            .set_route(Arc::new(Route::new(Endpoint::Orders)))
            .set_deadline(Instant::now())
            .set_send_by(Instant::now())
            .set_account(Account::new("desk"))
            .set_lane(Lane::Critical)
            .set_intent(IntentId::new("7"))
            .set_ticket(Ticket::new(Arc::new("inner half")))
            .set_sends(Sends::new("/api/oms/orders"))
            .set_generation(TokenGeneration(3))
            .set_send(SendStamp::new())
            .set_repeats(2)
            .put_at_head_of_lane()
            .keep_authorization();
        Place::Route.pass(request.extensions_mut());
        request
    }

    #[test]
    fn a_repeat_has_everything_of_the_first_send_but_its_evidence() {
        let first = of_a_call();
        let repeat = Spare::of(&first).with(());
        assert_eq!((repeat.method(), repeat.uri()), (first.method(), first.uri()));
        assert_eq!((repeat.version(), repeat.headers()), (first.version(), first.headers()));
        assert!(repeat.headers().get_all(COOKIE).iter().any(HeaderValue::is_sensitive));
        assert_eq!(repeat.extensions().get(), Some(&"the caller's own"));
        let (first, repeat) = (Call::of(first.extensions()), Call::of(repeat.extensions()));
        assert!(first.send().is_some() && repeat.send().is_none());
        assert_eq!((repeat.deadline(), repeat.send_by()), (first.deadline(), first.send_by()));
        assert_eq!((repeat.account(), repeat.intent()), (first.account(), first.intent()));
        assert_eq!((repeat.lane(), repeat.generation()), (first.lane(), first.generation()));
        assert_eq!((repeat.repeats(), repeat.is_at_head_of_lane()), (2, true));
        assert!(repeat.has_own_authorization());
        assert_eq!(repeat.route().map(|route| route.endpoint), Some(Some(Endpoint::Orders)));
        assert_eq!(repeat.ticket().and_then(Ticket::get), Some(&"inner half"));
        let counted = (repeat.sends().map(Sends::begin), first.sends().map(Sends::begin));
        assert_eq!(counted, (Some(0), Some(1)), "they count together");
    }

    #[test]
    fn a_request_without_facts_or_headers_is_repeated_too() {
        let first = Request::get("https://api.example/v2").body(()).unwrap();
        let repeat = Spare::of(&first).with(());
        assert_eq!((repeat.uri(), repeat.headers().len()), (first.uri(), 0));
        assert!(Call::of(repeat.extensions()).send().is_none());
    }
}
