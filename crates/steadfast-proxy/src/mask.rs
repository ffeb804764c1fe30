//! Keeps the service's credentials out of answers.
//!
//! A caller knows a local token alone, and may only be allowed to read. A service that quotes a request's API key or access token
//! would give it all that the account can do.

use std::{
    iter,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use steadfast::auth::{Found, SecretFinder, Token};

use crate::current::Current;

/// The texts that no answer may show, replaced by as many asterisks as their spelling has bytes, so that lengths stay right.
#[derive(Default)]
pub(crate) struct Mask {
    texts: SecretFinder,
    /// For the names of headers, whose letters are small.
    small: SecretFinder,
}

impl Mask {
    pub(crate) fn of(secrets: &[SecretString]) -> Self {
        let small = |secret: &SecretString| secret.expose_secret().to_ascii_lowercase().into();
        let small: Vec<SecretString> = secrets.iter().map(small).collect();
        Self { texts: SecretFinder::new(secrets), small: SecretFinder::new(&small) }
    }

    /// Hides secrets in the values of headers, and takes out the headers whose names hold one.
    pub(crate) fn hide_in(&self, headers: &mut HeaderMap) {
        let holds_one = |name: &&HeaderName| {
            let holds =
                |finder: &SecretFinder| !finder.find(name.as_str().as_bytes(), false).secrets.is_empty();
            holds(&self.small) || holds(&self.texts)
        };
        let named: Vec<HeaderName> = headers.keys().filter(holds_one).cloned().collect();
        for name in named {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            let shown = self.texts.find(value.as_bytes(), false).secrets;
            if !shown.is_empty() {
                let mut text = value.as_bytes().to_vec();
                shown.into_iter().for_each(|place| text[place].fill(b'*'));
                *value = HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("*"));
            }
        }
    }
}

/// The mask of an account whose token changes.
pub(crate) struct Masks {
    client: Current,
    state: Mutex<State>,
}

struct State {
    token: Option<Arc<Token>>,
    /// The key and the token at the last look.
    secrets: Vec<SecretString>,
    mask: Arc<Mask>,
}

impl Masks {
    pub(crate) fn new(client: Current) -> Self {
        let (token, secrets) = (client.get().tokens().token(), client.get().tokens().secrets());
        let mask = Arc::new(Mask::of(&secrets));
        Self { client, state: Mutex::new(State { token, secrets, mask }) }
    }

    /// Returns the mask for an answer that is here: of the token now, and of the one before, with which it was asked for if
    /// the token was renewed meanwhile.
    pub(crate) fn now(&self) -> Arc<Mask> {
        let mut state = self.state.lock();
        let client = self.client.get();
        let token = client.tokens().token();
        let is_known = match (&token, &state.token) {
            (Some(now), Some(known)) => Arc::ptr_eq(now, known),
            (now, known) => now.is_none() && known.is_none(),
        };
        if !is_known {
            let now = client.tokens().secrets();
            let before = std::mem::replace(&mut state.secrets, now.clone());
            (state.token, state.mask) = (token, Arc::new(Mask::of(&[now, before].concat())));
        }
        state.mask.clone()
    }
}

/// A body without secrets. It holds back no more than what may be the beginning of one, so never more than the longest
/// spelling of a secret.
pub(crate) struct Masked<B> {
    body: B,
    mask: Arc<Mask>,
    held: BytesMut,
    /// How many bytes at the beginning of `held` belong to a secret that begins before them.
    hidden: usize,
}

impl<B> Masked<B> {
    /// Returns a body that hides nothing yet.
    pub(crate) fn of(body: B) -> Self {
        Self { body, mask: Arc::default(), held: BytesMut::new(), hidden: 0 }
    }

    /// Returns the same body without the secrets of `mask`.
    pub(crate) fn by(self, mask: Arc<Mask>) -> Self {
        Self { mask, ..self }
    }

    /// Takes a part of the body in, and returns what may go out.
    fn pass(&mut self, data: Bytes) -> Bytes {
        if self.held.is_empty() {
            let found = self.mask.texts.find(&data, true);
            if found.secrets.is_empty() && found.open == data.len() {
                return data;
            }
        }
        self.held.extend_from_slice(&data);
        self.let_out(true)
    }

    /// Returns what of the held part may go out: all of it if the body does not go on.
    fn let_out(&mut self, goes_on: bool) -> Bytes {
        let Found { secrets, open, .. } = self.mask.texts.find(&self.held, goes_on);
        let mut out = self.held.split_to(open);
        let mut end = 0;
        for place in iter::once(0..self.hidden).chain(secrets) {
            out[place.start..place.end.min(open)].fill(b'*');
            end = end.max(place.end);
        }
        self.hidden = end.saturating_sub(open);
        out.freeze()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Masked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        loop {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers are the connection's between sidecar and service.
                    let Ok(data) = frame.into_data() else { continue };
                    let out = this.pass(data);
                    if !out.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(out))));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if this.held.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Ok(Frame::data(this.let_out(false))))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, held) = (self.body.size_hint(), self.held.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + held);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    fn mask() -> Arc<Mask> {
        Arc::new(Mask::of(&["abcabd".into(), "to/ken-42".into(), "short".into()]))
    }

    /// Returns what goes out of a body of these parts, part by part.
    fn passed(parts: &[&str]) -> Vec<String> {
        let mut masked = Masked::of(()).by(mask());
        let mut out: Vec<_> =
            parts.iter().map(|part| masked.pass(Bytes::copy_from_slice(part.as_bytes()))).collect();
        out.push(masked.let_out(false));
        out.iter().map(|part| String::from_utf8(part.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_secret_is_hidden_however_it_is_split_and_written() {
        let text = r"x abcabd abcabcabd to/ken-42 to\/ken-42 to%2fken-42 %74o%252Fken-42 to\u002Fken\\u002d42 short abcab";
        let hidden = r"x ****** abc****** ********* ********** *********** *************** ******************** short abcab";
        assert_eq!(passed(&[text]).concat(), hidden);
        for first in 0..text.len() {
            for second in first..text.len() {
                let parts = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(passed(&parts).concat(), hidden, "{parts:?}");
            }
        }
        let letters: Vec<_> = text.split("").collect();
        assert_eq!(passed(&letters).concat(), hidden);
    }

    #[test]
    fn secrets_that_share_characters_are_hidden_to_the_last_one() {
        let mask = Arc::new(Mask::of(&["abcdef".into(), "abcdefgh".into(), "efghij".into()]));
        for (text, hidden) in
            [("xabcdefg", "x******g"), ("xabcdefghy", "x********y"), ("abcdefghijk", "**********k")]
        {
            for at in 0..text.len() {
                let mut masked = Masked::of(()).by(mask.clone());
                let mut out = masked.pass(Bytes::from(&text[..at])).to_vec();
                out.extend(masked.pass(Bytes::from(&text[at..])));
                out.extend(masked.let_out(false));
                assert_eq!(String::from_utf8(out).unwrap(), hidden, "{at}");
            }
        }
    }

    #[test]
    fn nothing_is_held_back_but_what_may_begin_a_secret() {
        assert_eq!(passed(&["a line", " of ab", "c"]), ["a line", " of ", "", "abc"]);
    }

    #[tokio::test]
    async fn a_body_has_the_length_that_it_told() {
        let mut body = Masked::of(Full::new(Bytes::from("12abcabd34to/"))).by(mask());
        assert_eq!(body.size_hint().exact(), Some(13));
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "12******34");
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(3), false));
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "to/");
        assert!(body.is_end_stream() && body.frame().await.is_none());
    }

    #[test]
    fn a_header_shows_no_secret() {
        let mut headers = HeaderMap::new();
        headers.insert("x-echo", HeaderValue::from_static("Bearer abcabd:to/ken-42"));
        headers.insert("x-other", HeaderValue::from_static("abcab"));
        mask().hide_in(&mut headers);
        assert_eq!(headers["x-echo"], "Bearer ******:*********");
        assert_eq!(headers["x-other"], "abcab");
    }

    #[test]
    fn a_header_named_by_a_secret_is_taken_out() {
        let mask = Mask::of(&["Token-42".into(), "to/ken==".into()]);
        let mut headers = HeaderMap::new();
        for name in ["Token-42", "x-token-42-y", "TO%2Fken%3D%3D", "546f6b656e2d3432", "x-token-4"] {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static("a"));
        }
        mask.hide_in(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-token-4"]);
    }
}
