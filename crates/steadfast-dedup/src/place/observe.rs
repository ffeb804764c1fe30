use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use steadfast_call::{Moment, ext::Sent};
use steadfast_spec::parse_order_list;

use crate::{
    numbers::{Session, TradingDay},
    tracker::{
        account::Account,
        cached::is_out_of_a_cache,
        sent_credentials::{self, SentCredentials},
    },
};

/// A longer list is not parsed: the caller waits meanwhile, and our own reads find its orders.
const LONGEST_OBSERVED: usize = 1024 * 1024;

/// Reads along while a caller reads the order list.
///
/// The caller gets the same bytes and frames as without it. Only what the list holds counts: it may not be the whole
/// list. A body that exceeds the limit, fails, or is dropped halfway is not parsed.
///
/// It is boxed: few answers have one, and each answer would be moved with room for it.
pub(crate) struct Listener {
    account: Arc<Account>,
    /// The day on which the list was asked for, and when that was.
    day: TradingDay,
    asked: Moment,
    session: Session,
    credentials: Option<SentCredentials>,
    frames: Vec<Bytes>,
    held: usize,
}

impl Listener {
    /// Returns a listener for the answer to a request of this account.
    pub(crate) fn new(account: Arc<Account>) -> Box<Self> {
        let (day, asked) = (account.today(), account.settings.moment());
        Box::new(Self {
            account,
            day,
            asked,
            session: Session::default(),
            credentials: None,
            frames: Vec::new(),
            held: 0,
        })
    }

    /// Returns the listener if the answer may be a usable list.
    pub(crate) fn hears<B>(mut self: Box<Self>, response: &Response<B>) -> Option<Box<Self>> {
        let listed = response.status() == StatusCode::OK;
        // A compressed body would have to be unpacked first.
        let plain = !response.headers().contains_key(header::CONTENT_ENCODING);
        // A cached copy may be of the day before.
        let is_copy = is_out_of_a_cache(response.headers());
        if response.status().is_success() {
            self.account.hear_date(&self.asked, response.headers());
        }
        let fresh = !is_copy && !self.account.are_lists_of_another_day();
        // With a journal, the guard names the session by a hash.
        let extensions = response.extensions();
        let hashed = extensions.get::<Session>().copied();
        self.credentials = extensions.get::<SentCredentials>().cloned();
        self.session = hashed.unwrap_or_else(|| Session::new(Sent::of(extensions).generation()));
        (listed && plain && fresh).then_some(self)
    }

    /// True while the bytes so far may still be a list within the limit.
    fn take(&mut self, frame: &Bytes) -> bool {
        self.held += frame.len();
        self.frames.push(frame.clone());
        self.held <= self.account.settings.list_body_cap.min(LONGEST_OBSERVED)
    }

    fn end(self) {
        let body = match <[Bytes; 1]>::try_from(self.frames) {
            Ok([whole]) => whole,
            Err(frames) => frames.concat().into(),
        };
        // If the list cannot be read, the caller gets that error too.
        if let Ok(records) = parse_order_list(&body, &self.account.settings.field_names)
            && sent_credentials::have_plausible_ids(&records, self.credentials.as_ref())
        {
            self.account.take_caller_list(self.day, self.session, records);
        }
    }
}

pin_project! {
    /// A body with a listener.
    pub(crate) struct ObservedBody<B> {
        #[pin]
        body: B,
        listener: Option<Box<Listener>>,
    }
}

impl<B: Body<Data = Bytes>> ObservedBody<B> {
    pub(crate) fn new(body: B, listener: Box<Listener>) -> Self {
        let mut this = Self { body, listener: Some(listener) };
        if this.body.is_end_stream() {
            // An empty body is no list.
            this.listener = None;
        }
        this
    }
}

impl<B: Body<Data = Bytes>> Body for ObservedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        let going_on = match &frame {
            Some(Ok(frame)) => {
                let held = frame
                    .data_ref()
                    .is_none_or(|data| this.listener.as_mut().is_some_and(|listener| listener.take(data)));
                // A caller that reads by the declared length never polls for the end.
                if held && this.body.is_end_stream() { None } else { Some(held) }
            }
            Some(Err(_)) => Some(false),
            None => None,
        };
        match going_on {
            Some(true) => {}
            Some(false) => *this.listener = None,
            None => {
                if let Some(listener) = this.listener.take() {
                    listener.end();
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> fmt::Debug for ObservedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedBody").field("listening", &self.listener.is_some()).finish_non_exhaustive()
    }
}
