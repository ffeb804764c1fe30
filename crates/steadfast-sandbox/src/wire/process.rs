use std::time::Duration;

use http::StatusCode;

use super::{
    bytes::{head_length, length},
    patience::GIVE_UP,
};
use crate::{
    faults::{Fault, Seen},
    wire::page::{Content, Corrupted, Page},
};

impl Corrupted {
    /// Returns what an HTTP client sees of the fault's bytes, and after how long: a page, if it sees one.
    pub(crate) fn into_seen(self, wall: Duration) -> (Duration, Option<Page>) {
        let body = self.page.content.bytes();
        let half = body.len() / 2;
        let total = length(&self.page, wall);
        let byte = self.byte(total);
        let page = Page { status: status(self.fault).unwrap_or(self.page.status), ..self.page };
        match self.fault.seen().unwrap_or(Seen::HeadStalls) {
            Seen::Whole if self.fault == Fault::TransportSwitchingProtocols => {
                (Duration::ZERO, Some(page.with_body("")))
            }
            Seen::Whole => (Duration::ZERO, Some(page)),
            Seen::Slow => (Duration::from_secs(total as u64), Some(page)),
            Seen::SilentlyCut => {
                let kept = match self.fault {
                    Fault::TransportLengthShort | Fault::TransportCloseDelimitedCut => half,
                    _ => 0,
                };
                (Duration::ZERO, Some(page.with_body(body.slice(..kept))))
            }
            // There is no body to break off, so the connection breaks.
            Seen::BodyBroken if body.is_empty() => (Duration::ZERO, None),
            Seen::BodyBroken => {
                (Duration::ZERO, Some(Page { content: Content::Cut { whole: body, sent: half }, ..page }))
            }
            Seen::BodyStalls => {
                let sent = if self.fault == Fault::TransportStallAfterHead { 0 } else { half };
                (Duration::ZERO, Some(Page { content: Content::Stalled { whole: body, sent }, ..page }))
            }
            Seen::HeadStalls => (GIVE_UP, None),
            Seen::Reset => match byte.checked_sub(head_length(&page, wall)) {
                None => (Duration::ZERO, None),
                Some(sent) if sent >= body.len() => (Duration::ZERO, Some(page.with_body(body))),
                Some(sent) => {
                    (Duration::ZERO, Some(Page { content: Content::Cut { whole: body, sent }, ..page }))
                }
            },
            Seen::Unparsable | Seen::TooLarge | Seen::Incomplete => (Duration::ZERO, None),
        }
    }
}

impl Corrupted {
    /// Returns the status that a client sees; 0 if it sees none.
    pub(crate) fn shown_status(&self) -> u16 {
        match self.fault.seen() {
            None | Some(Seen::HeadStalls | Seen::Unparsable | Seen::TooLarge | Seen::Incomplete) => 0,
            Some(_) => status(self.fault).unwrap_or(self.page.status).as_u16(),
        }
    }
}

/// Returns the fault's own status.
fn status(fault: Fault) -> Option<StatusCode> {
    let status = match fault {
        Fault::TransportStatus600 => 600,
        Fault::TransportStatus999 => 999,
        Fault::TransportSwitchingProtocols => 101,
        Fault::Transport204Body => 204,
        Fault::Transport304Body => 304,
        _ => return None,
    };
    StatusCode::from_u16(status).ok()
}
