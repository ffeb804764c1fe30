use std::{fmt::Write, time::Duration};

use bytes::Bytes;

use super::{End, Script, Step};
use crate::{
    faults::Fault,
    wire::page::{Corrupted, Page},
};

/// An HTTP/1.1 answer, in the parts that faults change.
struct Raw {
    version: &'static str,
    status: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Raw {
    fn of(page: &Page, wall: Duration) -> Self {
        let headers = page.headers(wall).into_iter().map(|(name, value)| (name.to_owned(), value));
        let reason = page.status.canonical_reason().unwrap_or("Unknown");
        Self {
            version: "HTTP/1.1",
            status: format!("{} {reason}", page.status.as_u16()),
            headers: headers.collect(),
            body: page.content.bytes(),
        }
    }

    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets the length of the body.
    fn measured(self) -> Self {
        let length = self.body.len();
        self.with("content-length", length)
    }

    fn status(self, status: &str) -> Self {
        Self { status: status.to_owned(), ..self }
    }

    fn head(&self) -> String {
        let mut head = format!("{} {}\r\n", self.version, self.status);
        for (name, value) in &self.headers {
            // Writing to a text cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + "\r\n"
    }

    fn bytes(&self) -> Vec<u8> {
        join(&self.head(), &self.body)
    }

    /// Returns the body in two chunks, without the last chunk that ends it.
    fn chunks(&self) -> Vec<u8> {
        let (first, second) = self.body.split_at(self.body.len() / 2);
        let mut bytes = Vec::new();
        for chunk in [first, second].into_iter().filter(|chunk| !chunk.is_empty()) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }
}

fn join(head: &str, body: &[u8]) -> Vec<u8> {
    [head.as_bytes(), body].concat()
}

/// Returns how many bytes the head of an answer has.
pub(super) fn head_length(page: &Page, wall: Duration) -> usize {
    Raw::of(page, wall).measured().head().len()
}

/// Returns how many bytes an answer has.
pub(super) fn length(page: &Page, wall: Duration) -> usize {
    Raw::of(page, wall).measured().bytes().len()
}

impl Corrupted {
    /// Returns at which byte of an answer of this length the fault strikes.
    pub(super) fn byte(&self, length: usize) -> usize {
        let length = length as u64;
        let byte = self.at_byte.unwrap_or_else(|| self.chance % (length + 1)).min(length);
        usize::try_from(byte).unwrap_or(usize::MAX)
    }
}

/// Returns the bytes of a fault.
pub(super) fn script(corrupted: Corrupted, wall: Duration) -> Script {
    let raw = Raw::of(&corrupted.page, wall);
    let half = raw.body.len() / 2;
    match corrupted.fault {
        Fault::TransportFin => Script::new([], End::Close),
        Fault::TransportHalfClose => Script::new([], End::HalfClose),
        Fault::TransportNoAnswer | Fault::AuthLoginHang => Script::new([], End::Hang),
        Fault::TransportSlowLoris => {
            let bytes = raw.measured().bytes().into();
            Script::new([Step::Trickle(bytes, Duration::from_secs(1))], End::Keep)
        }
        Fault::TransportStallAfterHead => Script::sends(raw.measured().head(), End::Hang),
        Fault::TransportStallInBody => {
            let raw = raw.measured();
            Script::sends(join(&raw.head(), &raw.body[..half]), End::Hang)
        }
        Fault::TransportResetAtByte => {
            let mut bytes = raw.measured().bytes();
            bytes.truncate(corrupted.byte(bytes.len()));
            Script::sends(bytes, End::Reset)
        }
        Fault::TransportStatusLineCut => Script::sends("HTTP/1.1 20", End::Close),
        Fault::TransportHeadersCut => {
            let head = raw.measured().head();
            Script::sends(head[..head.len() - 10].to_owned(), End::Close)
        }
        Fault::TransportLengthLong => {
            let length = raw.body.len() + 10;
            Script::sends(raw.with("content-length", length).bytes(), End::Close)
        }
        Fault::TransportChunkedCut => {
            let raw = raw.with("transfer-encoding", "chunked");
            Script::sends(join(&raw.head(), &raw.chunks()), End::Close)
        }
        Fault::TransportCloseDelimitedCut => Script::sends(join(&raw.head(), &raw.body[..half]), End::Close),
        Fault::TransportGarbage => {
            let bytes: Vec<u8> =
                (0..200_u64).map(|i| (corrupted.chance.rotate_left(7) ^ (i * 197)) as u8 | 0x80).collect();
            Script::sends(bytes, End::Close)
        }
        // A record of the handshake, as a server's greeting begins.
        Fault::TransportTlsBytes => Script::sends(vec![0x16, 3, 3, 0, 0x3d, 2, 0, 0, 0x39, 3, 3], End::Close),
        // An empty frame of settings.
        Fault::TransportH2Preface => Script::sends(vec![0, 0, 0, 4, 0, 0, 0, 0, 0], End::Close),
        Fault::TransportSwitchingProtocols => {
            let headers = "connection: upgrade\r\nupgrade: other\r\n\r\n";
            Script::sends(format!("HTTP/1.1 101 Switching Protocols\r\n{headers}"), End::Close)
        }
        Fault::TransportContinueStorm => storm("HTTP/1.1 100 Continue\r\n\r\n", &raw.measured()),
        Fault::TransportEarlyHintsStorm => {
            storm("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n", &raw.measured())
        }
        Fault::TransportExtraAnswer => Script::sends(raw.measured().bytes().repeat(2), End::Keep),
        Fault::TransportAnswerAgain => Script::sends(raw.measured().bytes(), End::SendAgain),
        Fault::TransportCloseAfter => Script::sends(raw.measured().bytes(), End::Close),
        Fault::TransportCloseInRace => Script::sends(raw.measured().bytes(), End::CloseOnRequest),
        Fault::TransportMassReset => Script::sends(raw.measured().bytes(), End::ResetAll),
        fault => Script::sends(odd_head(fault, raw), End::Keep),
    }
}

fn storm(interim: &str, raw: &Raw) -> Script {
    Script::sends(join(&interim.repeat(50), &raw.bytes()), End::Keep)
}

/// Returns an answer with an invalid head. The connection stays open as far as the client allows it.
fn odd_head(fault: Fault, raw: Raw) -> Vec<u8> {
    let length = raw.body.len();
    let raw = match fault {
        Fault::TransportLengthShort => raw.with("content-length", length / 2),
        Fault::TransportLengthZero => raw.with("content-length", 0),
        Fault::TransportTwoLengths => raw.with("content-length", length).with("content-length", length + 1),
        Fault::TransportLengthNegative => raw.with("content-length", -1),
        Fault::TransportLengthOverflow => raw.with("content-length", "99999999999999999999"),
        Fault::TransportLengthAndChunked => {
            let raw = raw.with("content-length", 5).with("transfer-encoding", "chunked");
            return join(&raw.head(), &[&raw.chunks(), &b"0\r\n\r\n"[..]].concat());
        }
        Fault::TransportBadChunkSize => {
            let raw = raw.with("transfer-encoding", "chunked");
            return join(&(raw.head() + "size\r\n"), &raw.body);
        }
        Fault::TransportHeaders101 => {
            let missing = 101 - raw.headers.len() - 1;
            (0..missing).fold(raw.measured(), |raw, number| raw.with(&format!("x-{number}"), number))
        }
        Fault::TransportGiantHeader => raw.measured().with("x-giant", "g".repeat(500_000)),
        Fault::TransportBadHeaderName => raw.measured().with("x bad", 1),
        Fault::TransportHeaderNul => raw.measured().with("x-nul", "a\0b"),
        Fault::TransportObsFold => raw.measured().with("x-folded", "a\r\n b"),
        Fault::TransportBareLf => {
            let raw = raw.measured();
            return join(&raw.head().replace("\r\n", "\n"), &raw.body);
        }
        Fault::TransportStatus099 => raw.measured().status("099 Odd"),
        Fault::TransportStatus600 => raw.measured().status("600 Odd"),
        Fault::TransportStatus999 => raw.measured().status("999 Odd"),
        Fault::TransportHttp2Line => Raw { version: "HTTP/2.0", ..raw.measured() },
        Fault::Transport204Body => raw.measured().status("204 No Content"),
        Fault::Transport304Body => raw.measured().status("304 Not Modified"),
        _ => raw.measured(),
    };
    raw.bytes()
}
