use std::time::Duration;

use http::Method;
use percent_encoding::percent_decode_str;
use steadfast_spec::{AuthKind, Endpoint, Form, Zone};

use super::{BASE_PATH, Engine, LOGIN_PATH};
use crate::{
    gateway::{
        passage::{Caller, Passage},
        request::{IncomingRequest, UnreadBody},
        spec_reading::{IpRefusal, JsonBody, ListZone, OrderZone},
    },
    wire::page::{Page, refusal},
};

/// The checks of a request before it is executed.
impl Engine {
    /// Makes the gateway's checks (§7, column "Origin"), in order: path, method, query, credentials, quota, body.
    pub(super) fn admit(&mut self, passage: &mut Passage<'_>) -> Result<Form, Page> {
        let incoming = passage.incoming;
        let path = incoming.path.strip_prefix(BASE_PATH).filter(|path| path.starts_with('/'));
        let path = path.ok_or_else(refusal::not_found)?;
        if !is_well_formed(path) {
            return Err(refusal::bad_request());
        }
        passage.endpoint = self.endpoint(&incoming.method, path)?;
        // The login page is part of the login flow, and counted like its first step.
        let shown = passage.endpoint.unwrap_or(Endpoint::Authorize);
        passage.query = Form::parse(incoming.query.as_deref().unwrap_or_default().as_bytes())
            .map_err(|_| refusal::bad_request())?;
        // §7, 405: "DELETE without required query parameters such as `orderId`".
        if shown == Endpoint::CancelOrder && passage.query.get("orderId").is_none_or(str::is_empty) {
            return Err(refusal::method_not_allowed());
        }
        if shown.auth() != AuthKind::None && !self.is_open(shown, incoming) {
            self.spoil_credentials(passage)?;
            let caller = self.authenticate(shown.auth(), incoming, passage.now)?;
            passage.caller = Some(caller);
            if !self.directory.user(caller.user).app.admits(incoming.peer) {
                return Err(match self.settings.interpretation.ip_refusal {
                    IpRefusal::Unauthorized => refusal::unauthorized(),
                    IpRefusal::Forbidden => refusal::forbidden(),
                });
            }
        }
        // The key of a token exchange is in its form, so the form is read before the request is counted.
        let form = self.read_form(passage);
        passage.zones = self.zones(shown);
        self.count(passage, form.as_ref().ok())?;
        form
    }

    /// Axes 1 and 2: the zones of two endpoints can be read in several ways.
    fn zones(&self, endpoint: Endpoint) -> Vec<Zone> {
        let reading = &self.settings.interpretation;
        match (endpoint, reading.list_zone, reading.order_zone) {
            (Endpoint::Orders, ListZone::Data, _) => vec![Zone::DATA],
            (Endpoint::Orders, ListZone::Both, _) => vec![Zone::GENERAL, Zone::DATA],
            (Endpoint::PlaceOrder, _, OrderZone::AlsoGeneral) => vec![Zone::PLACE_ORDER, Zone::GENERAL],
            _ => endpoint.zones().to_vec(),
        }
    }

    /// Returns the endpoint; `None` for the login page, which is not in the table.
    fn endpoint(&self, method: &Method, path: &str) -> Result<Option<Endpoint>, Page> {
        if path == LOGIN_PATH {
            return if method == Method::POST { Ok(None) } else { Err(refusal::method_not_allowed()) };
        }
        let paths = &self.settings.paths;
        match paths.find(method, path) {
            None if paths.at(path).next().is_some() => Err(refusal::method_not_allowed()),
            None => Err(refusal::not_found()),
            found => Ok(found),
        }
    }

    /// §5: one 401 for every cause.
    pub(super) fn authenticate(
        &self,
        kind: AuthKind,
        incoming: &IncomingRequest,
        now: Duration,
    ) -> Result<Caller, Page> {
        let header = incoming.authorization.as_deref().and_then(|header| header.strip_prefix("Bearer "));
        let header = header.ok_or_else(refusal::unauthorized)?;
        let caller = match kind {
            AuthKind::ApiKey => self.directory.by_api_key(header).map(|user| Caller { user, session: None }),
            AuthKind::Full | AuthKind::None => header.split_once(':').and_then(|(api_key, token)| {
                let user = self.directory.by_api_key(api_key)?;
                let session = self.sessions.find(token, now).filter(|session| session.user == user)?;
                Some(Caller { user, session: Some(session) })
            }),
        };
        caller.ok_or_else(refusal::unauthorized)
    }

    /// §1: form bodies on POST and PUT; GET and DELETE need no `Content-Type` and have no body.
    fn read_form(&self, passage: &Passage<'_>) -> Result<Form, Page> {
        let incoming = passage.incoming;
        if !matches!(incoming.method, Method::POST | Method::PUT) {
            return Ok(Form::new());
        }
        let content_type = incoming.content_type.as_deref().unwrap_or_default();
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        if let Some(form) = self.form_of_another_body(passage, kind) {
            return Ok(form);
        }
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(match self.settings.interpretation.json_body {
                JsonBody::BadRequest => refusal::bad_request(),
                JsonBody::UnsupportedMediaType => refusal::unsupported_media_type(),
            });
        }
        match &incoming.body {
            Ok(body) => Form::parse(body).map_err(|_| refusal::bad_request()),
            Err(UnreadBody::TooLarge | UnreadBody::Broken) => Err(refusal::bad_request()),
        }
    }
}

/// §7, 400: a malformed URL. Escapes must be complete, and decode to UTF-8 without control characters.
fn is_well_formed(path: &str) -> bool {
    let bytes = path.as_bytes();
    let escapes_are_whole = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(i, _)| {
        bytes.get(i + 1).is_some_and(u8::is_ascii_hexdigit)
            && bytes.get(i + 2).is_some_and(u8::is_ascii_hexdigit)
    });
    escapes_are_whole
        && percent_decode_str(path).decode_utf8().is_ok_and(|text| !text.chars().any(char::is_control))
}
