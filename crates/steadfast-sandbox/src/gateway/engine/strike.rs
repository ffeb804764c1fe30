use std::time::Duration;

use http::StatusCode;
use steadfast_spec::AuthKind;

use super::Engine;
use crate::{
    faults::{Fault, Stage},
    gateway::{
        passage::Passage,
        plan::{Strike, Target},
        reply::{Action, Reply},
    },
    wire::{
        corrupt::corrupt,
        page::{Corrupted, Page, refusal},
    },
};

/// The faults that strike a request on its way through the gateway.
impl Engine {
    /// Applies the faults that strike after a request was executed.
    pub(super) fn corrupt(&mut self, reply: Reply, passage: &mut Passage<'_>) -> Reply {
        let Reply { after, action: Action::Respond(page) } = reply else { return reply };
        let strike = self.strike(Stage::Answer, passage);
        let action = match strike.map(|strike| strike.fault) {
            None => Action::Respond(page),
            Some(Fault::ConnectionResetAfter) => Action::Reset,
            // There is no body to break off, so the connection is reset.
            Some(Fault::ConnectionResetMidBody) if page.is_empty() => Action::Reset,
            Some(Fault::ConnectionResetMidBody) => Action::Respond(page.cut_in_half()),
            Some(fault) if fault.group() == "answer" => Action::Respond(corrupt(fault, page)),
            Some(fault) if fault.group() == "transport" => {
                let Some(strike) = strike else { return Reply { after, action: Action::Respond(page) } };
                return Reply { after, ..self.corrupted(strike, page, passage) };
            }
            Some(_) => {
                // From ten seconds behind to ten ahead.
                let skew = i8::try_from(self.draw.below("date-skew", &passage.key, 21)).unwrap_or_default();
                Action::Respond(Page { date_skew: skew - 10, ..page })
            }
        };
        Reply { after, action }
    }

    /// Returns an answer whose bytes the fault changes.
    pub(crate) fn corrupted(&self, strike: Strike, page: Page, passage: &Passage<'_>) -> Reply {
        let chance = self.draw.below("at-byte", &passage.key, u64::MAX);
        let corrupted = Corrupted { fault: strike.fault, page, at_byte: strike.at_byte, chance };
        Reply { after: Duration::ZERO, action: Action::Corrupt(corrupted) }
    }

    /// Returns the fault that strikes the request at this stage, if one does.
    pub(crate) fn strike(&mut self, stage: Stage, passage: &mut Passage<'_>) -> Option<Strike> {
        if self.plan.is_empty() {
            return None;
        }
        let target = Target {
            endpoint: passage.endpoint,
            intent: passage.incoming.intent.as_deref(),
            attempt: passage.attempt,
            key: &passage.key,
        };
        let strike = self.plan.strike(stage, target, self.draw)?;
        passage.faults.push(strike.fault.as_str());
        passage.answer_after = strike.answer_after.or(passage.answer_after);
        Some(strike)
    }

    pub(super) fn spoil_credentials(&mut self, passage: &mut Passage<'_>) -> Result<(), Page> {
        if self.plan.is_empty() {
            return Ok(());
        }
        let Ok(caller) = self.authenticate(AuthKind::Full, passage.incoming, passage.now) else {
            return Ok(());
        };
        let Some(strike) = self.strike(Stage::Credentials, passage) else { return Ok(()) };
        match strike.fault {
            Fault::Auth401 => return Err(refusal::unauthorized()),
            Fault::Auth403 => return Err(refusal::forbidden()),
            Fault::AuthAllTokensRevoked => self.sessions.revoke_all(),
            Fault::AuthSessionEvicted => self.sessions.evict_oldest(caller.user),
            Fault::AuthIpRemoved => {
                let peer = passage.incoming.peer;
                let whitelist = &mut self.directory.user_mut(caller.user).app.whitelist;
                whitelist.get_or_insert_default().remove(&peer);
            }
            _ => {
                let header = passage.incoming.authorization.as_deref().unwrap_or_default();
                if let Some((_, token)) = header.split_once(':') {
                    self.sessions.revoke(token);
                }
            }
        }
        Ok(())
    }
}

/// Returns the page of a fault that answers with a 5xx, or with the ambiguous 400.
pub(crate) fn fault_page(fault: Fault) -> Option<Page> {
    use steadfast_spec::msg;
    let name = fault.as_str().split_once('.').map_or("", |(_, name)| name);
    let (status, msg) = match name.split('-').next() {
        Some("504") => (StatusCode::GATEWAY_TIMEOUT, msg::GATEWAY_TIMED_OUT),
        Some("502") => (StatusCode::BAD_GATEWAY, msg::BAD_GATEWAY),
        Some("500") => (StatusCode::INTERNAL_SERVER_ERROR, msg::INTERNAL_SERVER_ERROR),
        Some("503") => (StatusCode::SERVICE_UNAVAILABLE, msg::SERVICE_UNAVAILABLE),
        Some("429") => (StatusCode::TOO_MANY_REQUESTS, msg::TOO_MANY_REQUESTS),
        Some("403") => (StatusCode::FORBIDDEN, msg::FORBIDDEN),
        Some("401") => (StatusCode::UNAUTHORIZED, msg::UNAUTHORIZED),
        Some("400") => (StatusCode::BAD_REQUEST, msg::INTERNAL_ERROR),
        _ => return None,
    };
    Some(Page::error(status, msg))
}
