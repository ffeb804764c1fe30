use std::{borrow::Cow, fmt};

use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header::CONTENT_TYPE,
    request,
};
use steadfast_spec::Form;

use crate::{
    Routes,
    ext::{Account, HeadOfLane, IntentId, Lane, ResendCount, Route, SendStamp, Stamp},
    stamps::Stamps,
};

/// The head of a request that may be sent again.
///
/// Nearly every call ends with its first send, and a copy of both maps costs more allocations than all other work of a
/// layer that might send again. So the parts that every call has are held by value, and become a map only for a second
/// send.
///
/// A [`SendStamp`] is left out, because it belongs to one send. A blank one that is never written would prove that
/// nothing ever leaves. The layer that guards the next send makes a new one.
///
/// # Example
///
/// ```
/// use http::Request;
/// use steadfast_call::{Spare, ext::IntentId};
///
/// let mut first = Request::get("https://api.example/v2/api/oms/orders").header("accept", "*/*").body(())?;
/// first.extensions_mut().insert(IntentId::new("7"));
///
/// let second = Spare::of(&first).with(());
/// assert_eq!(second.uri(), first.uri());
/// assert_eq!(second.headers(), first.headers());
/// assert_eq!(second.extensions().get::<IntentId>(), first.extensions().get());
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone)]
pub struct Spare {
    method: Method,
    uri: Uri,
    version: Version,
    maps: Maps,
}

#[derive(Clone)]
enum Maps {
    Light(Light),
    Whole { headers: HeaderMap, extensions: Extensions },
}

/// Boxed, because headers held by value would enlarge every future that contains them, and each layer moves it.
#[derive(Clone)]
enum Headers {
    None,
    /// The headers of the stack's own calls.
    Form,
    Listed(Box<[(HeaderName, HeaderValue)]>),
}

impl Headers {
    #[inline]
    fn of(headers: &HeaderMap) -> Self {
        let is_form = |(name, value): (&HeaderName, &HeaderValue)| {
            *name == CONTENT_TYPE && *value == Form::CONTENT_TYPE && !value.is_sensitive()
        };
        match headers.len() {
            0 => Self::None,
            1 if headers.iter().all(is_form) => Self::Form,
            _ => Self::Listed(headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()),
        }
    }
}

#[derive(Clone)]
struct Light {
    headers: Headers,
    stamps: Option<Stamps>,
    account: Option<Account>,
    lane: Option<Lane>,
    intent: Option<IntentId>,
    resends: Option<ResendCount>,
    head_of_lane: Option<HeadOfLane>,
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

    #[inline]
    fn new(
        method: &Method,
        uri: &Uri,
        version: Version,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Self {
        let maps = match Light::of(headers, extensions) {
            Some(light) => Maps::Light(light),
            None => {
                let (headers, mut extensions) = (headers.clone(), extensions.clone());
                SendStamp::remove(&mut extensions);
                Maps::Whole { headers, extensions }
            }
        };
        Self { method: method.clone(), uri: uri.clone(), version, maps }
    }

    /// Returns the request's route, as [`Routes::of`] finds it.
    #[must_use]
    pub fn route(&self) -> Cow<'_, Route> {
        let known = match &self.maps {
            Maps::Light(light) => light.stamps.as_ref().and_then(Stamps::get),
            Maps::Whole { extensions, .. } => Stamp::of(extensions),
        };
        Routes::or_shown(known, &self.method, &self.uri)
    }

    /// Returns the request, with this body.
    #[must_use]
    pub fn with<B>(self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        match self.maps {
            Maps::Light(light) => light.restore(&mut request),
            Maps::Whole { headers, extensions } => {
                *request.headers_mut() = headers;
                *request.extensions_mut() = extensions;
            }
        }
        request
    }
}

// An address may hold a code, and a header a secret.
impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Light {
    /// Returns `None` if there is any other extension.
    #[inline]
    fn of(headers: &HeaderMap, extensions: &Extensions) -> Option<Self> {
        /// Takes an entry out of the map, and counts down the entries left.
        fn take<T: Clone + Send + Sync + 'static>(extensions: &Extensions, left: &mut usize) -> Option<T> {
            if *left == 0 {
                return None;
            }
            let one = extensions.get().cloned();
            *left -= usize::from(one.is_some());
            one
        }
        // The entries that every call has come first.
        let stamps = extensions.get::<Stamps>();
        let mut left = extensions.len() - usize::from(stamps.is_some());
        let account = take(extensions, &mut left);
        let lane = take(extensions, &mut left);
        let intent = take(extensions, &mut left);
        let resends = take(extensions, &mut left);
        let head_of_lane = take(extensions, &mut left);
        if left > 0 {
            return None;
        }
        Some(Self {
            headers: Headers::of(headers),
            stamps: stamps.map(Stamps::of_next_send),
            account,
            lane,
            intent,
            resends,
            head_of_lane,
        })
    }

    fn restore<B>(self, request: &mut Request<B>) {
        fn put<T: Clone + Send + Sync + 'static>(extensions: &mut Extensions, one: Option<T>) {
            if let Some(one) = one {
                extensions.insert(one);
            }
        }
        match self.headers {
            Headers::None => {}
            Headers::Form => drop(request.headers_mut().insert(CONTENT_TYPE, Form::CONTENT_TYPE)),
            Headers::Listed(list) => request.headers_mut().extend(list),
        }
        let extensions = request.extensions_mut();
        put(extensions, self.stamps);
        put(extensions, self.account);
        put(extensions, self.lane);
        put(extensions, self.intent);
        put(extensions, self.resends);
        put(extensions, self.head_of_lane);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the extensions hold the standard library's instants")]
mod tests {
    use std::{sync::Arc, time::Instant};

    use http::header::COOKIE;
    use steadfast_spec::Endpoint;

    use super::*;
    use crate::{
        Place, Route as Facts,
        ext::{Deadline, SendBy, Sends, Ticket},
    };

    /// Returns a request with everything that can be held by value.
    fn of_a_call() -> Request<()> {
        let mut request = Request::post("https://api.example/v2/api/oms/orders").body(()).unwrap();
        *request.version_mut() = Version::HTTP_2;
        let mut secret = HeaderValue::from_static("secret");
        secret.set_sensitive(true);
        request.headers_mut().append(COOKIE, HeaderValue::from_static("one"));
        request.headers_mut().append(COOKIE, secret);
        let extensions = request.extensions_mut();
        Route::new(Facts::new(Endpoint::Orders)).put(extensions);
        Deadline(Instant::now()).put(extensions);
        SendBy(Instant::now()).put(extensions);
        extensions.insert(Account::new("desk"));
        extensions.insert(Lane::Critical);
        extensions.insert(IntentId::new("7"));
        Ticket::new(Arc::new("inner half")).put(extensions);
        Sends::new("/api/oms/orders").put(extensions);
        extensions.insert(ResendCount(2));
        extensions.insert(HeadOfLane);
        Place::Route.pass(extensions);
        request
    }

    /// Returns the spare of the request, if it is held by value.
    fn light(request: &Request<()>) -> Option<Spare> {
        Some(Spare::of(request)).filter(|spare| matches!(spare.maps, Maps::Light(_)))
    }

    #[test]
    fn what_is_held_by_value_comes_back_whole() {
        let first = of_a_call();
        let repeat = light(&first).unwrap().with(());
        assert_eq!((repeat.method(), repeat.uri()), (first.method(), first.uri()));
        assert_eq!((repeat.version(), repeat.headers()), (first.version(), first.headers()));
        assert!(repeat.headers().get_all(COOKIE).iter().any(HeaderValue::is_sensitive));
        let (first, repeat) = (first.extensions(), repeat.extensions());
        assert_eq!(repeat.len(), first.len());
        assert_eq!(Deadline::of(repeat), Deadline::of(first));
        assert_eq!(SendBy::of(repeat), SendBy::of(first));
        assert_eq!(repeat.get::<Account>(), first.get());
        assert_eq!(repeat.get::<Lane>(), first.get());
        assert_eq!(repeat.get::<IntentId>(), first.get());
        assert_eq!(repeat.get::<ResendCount>(), first.get());
        assert_eq!(repeat.get::<HeadOfLane>(), first.get());
        assert_eq!(Route::of(repeat).map(|route| route.endpoint), Some(Some(Endpoint::Orders)));
        assert_eq!(Ticket::of(repeat).and_then(Ticket::get), Some(&"inner half"));
        let counted = Sends::of(repeat).map(Sends::begin);
        assert_eq!((counted, Sends::of(first).map(Sends::begin)), (Some(0), Some(1)), "they count together");
    }

    #[test]
    fn a_form_without_other_headers_is_a_form_again() {
        let mut form = of_a_call();
        form.headers_mut().clear();
        assert_eq!(light(&form).unwrap().with(()).headers(), form.headers());
        form.headers_mut().insert(CONTENT_TYPE, Form::CONTENT_TYPE);
        let mut json = form.clone();
        json.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut secret = form.clone();
        secret.headers_mut().get_mut(CONTENT_TYPE).unwrap().set_sensitive(true);
        let mut more = form.clone();
        more.headers_mut().append(CONTENT_TYPE, Form::CONTENT_TYPE);
        for first in [form, json, secret, more] {
            let repeat = light(&first).unwrap().with(());
            assert_eq!(repeat.headers(), first.headers());
            let sensitive = |request: &Request<()>| request.headers()[CONTENT_TYPE].is_sensitive();
            assert_eq!(sensitive(&repeat), sensitive(&first));
        }
    }

    #[test]
    fn with_anything_else_in_it_a_request_is_copied_whole() {
        let mut named = of_a_call();
        named.extensions_mut().insert("the caller's own");
        // Read as a stamp, it is still an entry of its own for other readers.
        let mut dated = of_a_call();
        dated.extensions_mut().insert(Deadline(Instant::now()));
        for first in [named, dated] {
            assert!(light(&first).is_none());
            let repeat = Spare::of(&first).with(());
            assert_eq!(repeat.headers(), first.headers());
            assert_eq!(repeat.extensions().len(), first.extensions().len());
            assert_eq!(repeat.extensions().get::<&str>(), first.extensions().get());
            assert_eq!(Deadline::of(repeat.extensions()), Deadline::of(first.extensions()));
        }
    }

    #[test]
    fn a_stamp_stays_with_its_send() {
        let mut few = of_a_call();
        SendStamp::new().put(few.extensions_mut());
        assert!(light(&few).is_some());
        let mut whole = few.clone();
        whole.extensions_mut().insert("the caller's own");
        let mut foreign = of_a_call();
        foreign.extensions_mut().insert(SendStamp::new());
        for first in [few, whole, foreign] {
            let repeat = Spare::of(&first).with(());
            assert!(SendStamp::of(first.extensions()).is_some());
            assert!(SendStamp::of(repeat.extensions()).is_none());
            assert!(Ticket::of(repeat.extensions()).is_some());
        }
    }
}
