use std::{error::Error as StdError, fmt};

use bytes::Bytes;
use http::{Request, Response, StatusCode, response::Parts};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use steadfast_auth::TokenSource;
use steadfast_call::{Call, Class, Lane, Outcome, Resend};
use steadfast_spec::{Envelope, Operation};
use tokio::time::{Instant, timeout_at};

use super::{Body, Client, Record, Records};
use crate::error::{Error, ErrorKind};

/// How much of an answer is held in memory, including order lists.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// How many characters of an answer's text are kept.
const TEXT_LIMIT: usize = 256;

/// Reading answers to their end.
impl Client {
    /// Returns the whole body of a successful answer; `None` for `no-data`.
    pub(super) async fn read(&self, operation: &Operation) -> Result<Option<Bytes>, Error> {
        self.read_in(None, operation).await
    }

    /// Returns the same for a read that a cancel waits for: it leaves ahead of all other requests, too.
    pub(super) async fn read_for_cancel(&self, operation: &Operation) -> Result<Option<Bytes>, Error> {
        self.read_in(Some(Lane::Critical), operation).await
    }

    async fn read_in(&self, lane: Option<Lane>, operation: &Operation) -> Result<Option<Bytes>, Error> {
        let safe = Class::of(operation.endpoint()) == Class::Safe;
        let read = async {
            let mut request = self.request(operation)?;
            if let Some(lane) = lane {
                Call::of_mut(request.extensions_mut()).set_lane(lane);
            }
            Ok(self.success(request).await?.map(Response::into_body))
        };
        let result = read.await.map_err(|error: Error| error.safe(safe));
        if operation.endpoint().is_special() { result.map_err(Error::in_doubt_if_unknown) } else { result }
    }

    /// Returns the successful answer to a request; `None` for `no-data`.
    pub(super) async fn success(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Option<Response<Bytes>>, Error> {
        let (parts, body) = self.answer(request).await?;
        match Envelope::parse(&body) {
            Ok(Envelope::Ok { .. }) if parts.status == StatusCode::OK => {
                Ok(Some(Response::from_parts(parts, body)))
            }
            Ok(Envelope::NoData { .. }) if parts.status == StatusCode::OK => Ok(None),
            Err(error) if parts.status == StatusCode::OK => {
                Err(Error::of_answer(&parts, None).because(error))
            }
            _ => Err(Error::of_answer(&parts, self.text_of(&body))),
        }
    }

    /// Returns the payload of a successful answer; `no-data` is an error.
    pub(super) async fn record(&self, operation: &Operation) -> Result<Record, Error> {
        let unknown = Outcome::Unknown { resend: Resend::Never };
        match self.read(operation).await? {
            Some(body) => Record::payload_of(&body).map_err(|error| Error::unexpected(unknown, error)),
            None => Err(Error::new(ErrorKind::UnexpectedAnswer, unknown)),
        }
    }

    /// Returns the records of a successful answer while it arrives.
    pub(super) async fn records(&self, operation: &Operation) -> Result<Records, Error> {
        let until = self.until();
        let response = self.raw(self.request(operation)?).await.map_err(|error| error.safe(true))?;
        if response.status() == StatusCode::OK {
            return Ok(Records::new(response, self.tokens.clone()));
        }
        let (parts, body) = self.collect(response, until).await?;
        Err(Error::of_answer(&parts, self.text_of(&body)).safe(true))
    }

    pub(super) async fn answer(&self, request: Request<Full<Bytes>>) -> Result<(Parts, Bytes), Error> {
        let until = self.until();
        self.collect(self.raw(request).await?, until).await
    }

    /// Returns by when a call that begins now must have its whole answer; `None` if no clock reaches the
    /// deadline.
    pub(super) fn until(&self) -> Option<Instant> {
        Instant::now().checked_add(self.deadline.limits().0)
    }

    /// Returns the whole answer if it arrives by `until`.
    pub(super) async fn collect(
        &self,
        response: Response<Body>,
        until: Option<Instant>,
    ) -> Result<(Parts, Bytes), Error> {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT).collect();
        let body = match until {
            // The layers' deadline covers the head only; a body that trickles would keep the caller for ever.
            Some(until) => match timeout_at(until, body).await {
                Ok(body) => body,
                Err(_) => return Err(Error::broken_off(&parts, AnswerTooSlow)),
            },
            None => body.await,
        };
        match body {
            Ok(body) => Ok((parts, body.to_bytes())),
            // An answer longer than any list is the service's doing, and was not cut on the way.
            Err(error) if error.is::<LengthLimitError>() => {
                Err(Error::of_answer(&parts, None).because(error))
            }
            Err(error) => Err(Error::broken_off(&parts, error)),
        }
    }

    /// Returns the `msg` of an error envelope, shortened for a log line and without credentials.
    pub(super) fn text_of(&self, body: &[u8]) -> Option<String> {
        let (Envelope::Error { msg } | Envelope::NoData { msg }) = Envelope::parse(body).ok()? else {
            return None;
        };
        Some(readable(&self.tokens, &msg))
    }
}

/// Returns the service's own text, shortened for a log line and without credentials.
pub(super) fn readable(tokens: &TokenSource, text: &str) -> String {
    if tokens.is_quoted_in(text) {
        return "(a text that quotes the credentials)".to_owned();
    }
    text.chars().take(TEXT_LIMIT).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The head of the answer came in time, but not all of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AnswerTooSlow;

impl fmt::Display for AnswerTooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("answer was not complete by the call's deadline")
    }
}

impl StdError for AnswerTooSlow {}
