//! The faults, in one table of their names. The code of each is where it strikes.

mod catalogue;
mod name;
mod seen;
mod stage;

pub(crate) use self::stage::Stage;
pub use self::{
    catalogue::{CatalogueRow, Cover, catalogue},
    name::UnknownFault,
    seen::Seen,
    stage::Place,
};

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal [$($id:literal),*],)+) => {
        /// Something that the sandbox does wrong on demand, with one name that is used everywhere.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[doc = $doc])* $variant,)+
        }

        impl Fault {
            /// Every fault, by group.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The fault's name on the command line, in scripts and in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The items of the fault catalogue that the fault is an instance of.
            #[must_use]
            pub const fn covers(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($id),*],)+
                }
            }

            /// The fault in one sentence.
            #[must_use]
            pub fn summary(self) -> &'static str {
                let lines: &[&str] = match self {
                    $(Self::$variant => &[$($doc),*],)+
                };
                lines.first().copied().unwrap_or_default().trim()
            }
        }
    };
}

faults! {
    /// 504, and the order exists.
    Placement504Applied = "placement.504-applied" ["F1"],
    /// 504, and the order does not exist.
    Placement504NotApplied = "placement.504-not-applied" ["F2"],
    /// 504, and the order comes to exist some seconds later.
    Placement504Late = "placement.504-late" ["F3"],
    /// 502, and the order exists.
    Placement502Applied = "placement.502-applied" ["F5"],
    /// 502, and the order does not exist.
    Placement502NotApplied = "placement.502-not-applied" [],
    /// 502, and the order comes to exist some seconds later.
    Placement502Late = "placement.502-late" [],
    /// 500, and the order exists.
    Placement500Applied = "placement.500-applied" ["F5"],
    /// 500, and the order does not exist.
    Placement500NotApplied = "placement.500-not-applied" [],
    /// 500, and the order comes to exist some seconds later.
    Placement500Late = "placement.500-late" [],
    /// 503, and the order exists.
    Placement503Applied = "placement.503-applied" ["F5"],
    /// 503, and the order does not exist.
    Placement503NotApplied = "placement.503-not-applied" [],
    /// 503, and the order comes to exist some seconds later.
    Placement503Late = "placement.503-late" [],
    /// 400 with the internal-error text, and the order exists.
    Placement400InternalApplied = "placement.400-internal-applied" ["E19"],
    /// 400 with the internal-error text, and the order does not exist.
    Placement400InternalNotApplied = "placement.400-internal-not-applied" ["E19"],
    /// 400 with the internal-error text, and the order comes to exist some seconds later.
    Placement400InternalLate = "placement.400-internal-late" ["E19"],
    /// The order exists, and the body of its 200 breaks off.
    Placement200Truncated = "placement.200-truncated" ["E3", "C3"],
    /// The order exists, and its 200 does not hold the identifier.
    Placement200NoOrderId = "placement.200-no-order-id" ["E7"],
    /// The order does not exist, and the answer is a 200 whose envelope is an error.
    Placement200Error = "placement.200-error" ["E8"],
    /// The order exists, and the connection is reset.
    PlacementResetApplied = "placement.reset-applied" ["B5"],
    /// The request was read, the order does not exist, and the connection is reset.
    PlacementResetNotApplied = "placement.reset-not-applied" ["B4"],
    /// The gateway forwards the request twice: two orders, one answer.
    PlacementDoubleForward = "placement.double-forward" ["F11"],
    /// 400 with a text that §7 does not have, and the order exists.
    Placement400UnknownApplied = "placement.400-unknown-applied" ["E20"],
    /// 400 with a text that §7 does not have, and the order does not exist.
    Placement400UnknownNotApplied = "placement.400-unknown-not-applied" ["E20"],
    /// 400 with the gateway's text, and the order does not exist.
    Placement400BadRequest = "placement.400-bad-request" ["E20"],
    /// 400 with the text of the input validation, and the order does not exist.
    Placement400Validation = "placement.400-validation" ["E20"],
    /// The order is placed, and completed at once.
    PlacementBookedCompleted = "placement.booked-completed" ["F10"],
    /// The order is placed, and rejected at once.
    PlacementBookedRejected = "placement.booked-rejected" ["F10"],
    /// The order is placed, and cancelled at once.
    PlacementBookedCancelled = "placement.booked-cancelled" ["F10"],
    /// 401, and the order exists.
    Placement401Applied = "placement.401-applied" [],
    /// 403, and the order exists.
    Placement403Applied = "placement.403-applied" [],
    /// 429, and the order exists.
    Placement429Applied = "placement.429-applied" [],
    /// The order exists, and its 200 names the user's order before it, if there is one.
    PlacementRepeatedIdApplied = "placement.repeated-id-applied" [],
    /// The order does not exist, and its 200 names the user's latest order, if there is one.
    PlacementRepeatedIdNotApplied = "placement.repeated-id-not-applied" [],
    /// The order exists, and its 200 names an order that does not.
    PlacementInventedIdApplied = "placement.invented-id-applied" [],
    /// The order does not exist, and its 200 names one that does not either.
    PlacementInventedIdNotApplied = "placement.invented-id-not-applied" [],
    /// 502 from an intermediary, and the order exists.
    PlacementProxy502Applied = "placement.proxy-502-applied" [],
    /// 502 from an intermediary, and the order does not exist.
    PlacementProxy502NotApplied = "placement.proxy-502-not-applied" [],
    /// 502 from an intermediary, and the order comes to exist 1 to 29 s later.
    PlacementProxy502Late = "placement.proxy-502-late" [],
    /// 503 from an intermediary, and the order exists.
    PlacementProxy503Applied = "placement.proxy-503-applied" [],
    /// 503 from an intermediary, and the order does not exist.
    PlacementProxy503NotApplied = "placement.proxy-503-not-applied" [],
    /// 503 from an intermediary, and the order comes to exist 1 to 29 s later.
    PlacementProxy503Late = "placement.proxy-503-late" [],
    /// 504 from an intermediary, and the order exists.
    PlacementProxy504Applied = "placement.proxy-504-applied" [],
    /// 504 from an intermediary, and the order does not exist.
    PlacementProxy504NotApplied = "placement.proxy-504-not-applied" [],
    /// 504 from an intermediary, and the order comes to exist 1 to 29 s later.
    PlacementProxy504Late = "placement.proxy-504-late" [],
    /// 520 from an intermediary, and the order exists.
    PlacementProxy520Applied = "placement.proxy-520-applied" [],
    /// 520 from an intermediary, and the order does not exist.
    PlacementProxy520NotApplied = "placement.proxy-520-not-applied" [],
    /// 520 from an intermediary, and the order comes to exist 1 to 29 s later.
    PlacementProxy520Late = "placement.proxy-520-late" [],
    /// 401 from an intermediary, and the order exists.
    PlacementProxy401Applied = "placement.proxy-401-applied" [],
    /// 403 from an intermediary, and the order exists.
    PlacementProxy403Applied = "placement.proxy-403-applied" [],
    /// 403 from an intermediary, and the order does not exist.
    PlacementProxy403NotApplied = "placement.proxy-403-not-applied" [],
    /// 404 from an intermediary, and the order exists.
    PlacementProxy404Applied = "placement.proxy-404-applied" [],
    /// 429 from an intermediary, and the order exists.
    PlacementProxy429Applied = "placement.proxy-429-applied" [],

    /// The order list is `no-data` although orders exist.
    ListEmpty = "list.empty" ["F7"],
    /// Every other order is missing from the list.
    ListPartial = "list.partial" ["F7"],
    /// The list is as it was some time ago.
    ListStale = "list.stale" ["F7"],
    /// The list shows open orders only.
    ListOpenOnly = "list.open-only" [],
    /// Each order is listed twice.
    ListDuplicatedIds = "list.duplicated-ids" [],
    /// Identifiers are numbers.
    ListNumericIds = "list.numeric-ids" [],
    /// Statuses are texts that §2 does not have.
    ListUnknownEnums = "list.unknown-enums" [],
    /// Records lack `legType`.
    ListMissingLegType = "list.missing-leg-type" [],
    /// Records lack their prices.
    ListMissingPrice = "list.missing-price" [],
    /// Prices and quantities are texts with four decimals.
    ListPricesReformatted = "list.prices-reformatted" [],
    /// Market orders are listed as limit orders.
    ListMarketAsLimit = "list.market-as-limit" [],
    /// The body of the list breaks off.
    ListTruncated = "list.truncated" ["E3"],
    /// The list is answered with 504.
    List504 = "list.504" ["F15"],
    /// The list is answered with 429 although the quota is not used up.
    List429 = "list.429" ["F15", "H4"],
    /// The list is answered with 401 although the token is good.
    List401 = "list.401" ["F15"],
    /// The list is answered with 403 although the token is good.
    List403 = "list.403" ["F15"],
    /// The list is answered with 500.
    List500 = "list.500" ["F15"],
    /// The list is answered with 502.
    List502 = "list.502" ["F15"],
    /// The list is answered with 503.
    List503 = "list.503" ["F15"],
    /// Fifty thousand orders of nobody stand in the list behind the real ones.
    ListHuge = "list.huge" ["E17"],
    /// A hundred thousand records that hold only an identifier, new ones for each list, stand in it behind the real ones.
    ListHugeBare = "list.huge-bare" ["E17"],
    /// An old list comes out of a cache, with its `Age`.
    ListCachedAge = "list.cached-age" [],
    /// An old list comes out of a cache, with `X-Cache: HIT`.
    ListCachedHit = "list.cached-hit" [],
    /// An old list comes out of a cache, with its `Age`, unless the request says `Cache-Control: no-cache`.
    ListCachedUnlessAsked = "list.cached-unless-asked" [],

    /// The request's token dies before the request is looked at.
    AuthTokenRevoked = "auth.token-revoked" ["G2"],
    /// All tokens die, as at a night roll-over.
    AuthAllTokensRevoked = "auth.all-tokens-revoked" ["G2"],
    /// The user's oldest session is evicted.
    AuthSessionEvicted = "auth.session-evicted" ["G10"],
    /// The client's address is taken off the app's whitelist.
    AuthIpRemoved = "auth.ip-removed" ["G3"],
    /// The `Date` header is up to ten seconds off.
    AuthDateSkew = "auth.date-skew" ["G13"],
    /// A login is answered with 500 after its session was opened.
    AuthLogin5xx = "auth.login-5xx" ["G4"],
    /// The account is locked: every login is refused from now on.
    AuthLockOut = "auth.lock-out" [],
    /// 401 although the token is good, and stays so.
    Auth401 = "auth.401" ["G15"],
    /// 403 although nothing is forbidden.
    Auth403 = "auth.403" ["G14"],
    /// The `expires_in` of a login is 0; its token is good.
    AuthExpiresZero = "auth.expires-zero" ["G7"],
    /// The `expires_in` of a login is -1; its token is good.
    AuthExpiresNegative = "auth.expires-negative" ["G7"],
    /// The `expires_in` of a login is more than any clock holds.
    AuthExpiresHuge = "auth.expires-huge" ["G7"],
    /// The `expires_in` of a login is a text that is no number.
    AuthExpiresText = "auth.expires-text" ["G7"],
    /// A login answers with the token of the user's latest session instead of a new one.
    AuthSameToken = "auth.same-token" ["G5"],
    /// A login is answered with 429 before its password is looked at.
    AuthLogin429 = "auth.login-429" ["G4"],
    /// A login is answered with 500 before its password is looked at.
    AuthLogin500 = "auth.login-500" ["G4"],
    /// A login is answered with 504 when the gateway's patience ends; no session is opened.
    AuthLogin504 = "auth.login-504" ["G4"],
    /// A login is never answered.
    AuthLoginHang = "auth.login-hang" ["G4"],
    /// The gateway's clock is two minutes ahead of the authenticator's.
    AuthTotpSkew = "auth.totp-skew" ["G13"],

    /// Somebody else uses up the request's quota just before it.
    QuotaForeign = "quota.foreign" ["H2"],
    /// All limits are half of what the specification says, from now on.
    QuotaHalved = "quota.halved" [],
    /// One request a second is the limit of every zone that counts seconds, from now on.
    QuotaLowered = "quota.lowered" [],
    /// 429 although the quota is not used up.
    QuotaStorm = "quota.storm" ["H2"],
    /// 429 although the quota is not used up, with `Retry-After: 2`.
    QuotaStormRetryAfter = "quota.storm-retry-after" ["H3"],
    /// 429 although the quota is not used up, with a `Retry-After` that nobody can mean.
    QuotaStormAbsurd = "quota.storm-absurd" ["H3"],
    /// 429 although the quota is not used up, with `Retry-After: 0`.
    QuotaStormRetryAfterZero = "quota.storm-retry-after-zero" ["H3"],
    /// 429 although the quota is not used up, with `Retry-After: 60`.
    QuotaStormRetryAfter60 = "quota.storm-retry-after-60" ["H3"],
    /// 429 although the quota is not used up, with a `Retry-After` that is a date.
    QuotaStormRetryAfterDate = "quota.storm-retry-after-date" ["H3"],
    /// 429 although the quota is not used up, with a `Retry-After` that is nothing.
    QuotaStormRetryAfterGarbage = "quota.storm-retry-after-garbage" ["H3"],
    /// Every request of the next minute is answered with 429, whoever sends it.
    QuotaStormMinute = "quota.storm-minute" ["H10"],

    /// The connection is reset before the request is looked at.
    ConnectionResetBefore = "connection.reset-before" ["B3"],
    /// The request is executed, and the connection is reset instead of an answer.
    ConnectionResetAfter = "connection.reset-after" ["B5", "F6"],
    /// The request is executed, and the connection breaks in the middle of the answer's body.
    ConnectionResetMidBody = "connection.reset-mid-body" ["B8", "C3"],
    /// The connection is reset as soon as it is accepted.
    ConnectionAcceptReset = "connection.accept-reset" ["A5"],
    /// The connection ends as soon as it is accepted.
    ConnectionAcceptClose = "connection.accept-close" ["B1", "B2"],
    /// Nobody reads from the connection for five seconds.
    ConnectionAcceptSlow = "connection.accept-slow" ["B11"],
    /// Nobody ever reads from the connection.
    ConnectionBlackHole = "connection.black-hole" ["B10", "A4"],
    /// The connection is reset after some bytes of the request, which `at_byte` can name.
    ConnectionResetMidRequest = "connection.reset-mid-request" ["B9"],
    /// An answer comes before any request, and the connection ends.
    ConnectionEarlyAnswer = "connection.early-answer" [],
    /// The connection ends without a word after its third answer.
    ConnectionMaxRequests = "connection.max-requests" ["B15"],

    /// 200 with an empty body.
    AnswerEmpty = "answer.empty" ["E1"],
    /// 200 with a page for people.
    AnswerHtml = "answer.html" ["E2"],
    /// 502 with a page for people.
    AnswerHtml502 = "answer.html-502" ["E2"],
    /// The body is half of the JSON, and announced as long as it is.
    AnswerJsonCut = "answer.json-cut" ["E3"],
    /// The body is JSON but for two bytes that no text has.
    AnswerInvalidUtf8 = "answer.invalid-utf8" ["E4"],
    /// The body is JSON without `s`, `d` and `msg`.
    AnswerNotEnvelope = "answer.not-envelope" ["E5"],
    /// The envelope lacks `s`.
    AnswerSMissing = "answer.s-missing" ["E5"],
    /// The envelope has an `s` that §1 does not have.
    AnswerSUnknown = "answer.s-unknown" ["E5"],
    /// The envelope has `"OK"` for `"ok"`.
    AnswerSUpper = "answer.s-upper" ["E5"],
    /// The envelope lacks `d`.
    AnswerNoD = "answer.no-d" ["E6"],
    /// The identifier of a placed order is an empty text.
    AnswerOrderIdEmpty = "answer.order-id-empty" ["E7"],
    /// The identifier of a placed order is a number.
    AnswerOrderIdNumber = "answer.order-id-number" ["E7"],
    /// The identifier of a placed order is null.
    AnswerOrderIdNull = "answer.order-id-null" ["E7"],
    /// The envelope says `no-data`, and holds data.
    AnswerNoDataWithD = "answer.no-data-with-d" ["E11"],
    /// The envelope says `error`, and holds what a success would.
    AnswerErrorWithD = "answer.error-with-d" ["E8"],
    /// The envelope holds ten thousand arrays, one inside the other.
    AnswerDeepNesting = "answer.deep-nesting" ["E13"],
    /// The envelope holds numbers that no machine word holds.
    AnswerHugeNumbers = "answer.huge-numbers" ["E14"],
    /// The envelope holds an escape that is half of a character.
    AnswerLoneSurrogate = "answer.lone-surrogate" ["E15"],
    /// A NUL stands in the text of the envelope.
    AnswerNulInMsg = "answer.nul-in-msg" ["E15"],
    /// The text of the envelope is a megabyte long.
    AnswerLongMsg = "answer.long-msg" ["E15"],
    /// 500 with an envelope of 50 MiB.
    Answer50MibError = "answer.50-mib-error" ["C25"],
    /// The body does not end before ten gigabytes.
    AnswerEndless = "answer.endless" ["C25"],
    /// 302 to another host.
    AnswerRedirect302 = "answer.redirect-302" [],
    /// 307, which asks to send the same again to another host.
    AnswerRedirect307 = "answer.redirect-307" [],
    /// 308, which asks to send the same again to another host.
    AnswerRedirect308 = "answer.redirect-308" [],
    /// `Content-Encoding: gzip` before a plain body.
    AnswerGzipClaim = "answer.gzip-claim" [],
    /// 16 MiB of nothing, compressed to a hundredth.
    AnswerGzipBomb = "answer.gzip-bomb" [],
    /// The answer says `Connection: close`.
    AnswerConnectionClose = "answer.connection-close" ["B14"],

    /// The connection ends without an answer.
    TransportFin = "transport.fin" ["B2"],
    /// The gateway ends its half of the connection without an answer, and goes on reading.
    TransportHalfClose = "transport.half-close" ["B6"],
    /// The request is never answered, and the connection stays open.
    TransportNoAnswer = "transport.no-answer" ["B10"],
    /// The answer comes at one byte a second.
    TransportSlowLoris = "transport.slow-loris" ["B12"],
    /// The head comes, and then nothing.
    TransportStallAfterHead = "transport.stall-after-head" ["C4"],
    /// Half of the body comes, and then nothing.
    TransportStallInBody = "transport.stall-in-body" ["C4"],
    /// The connection is reset after some bytes of the answer, which `at_byte` can name.
    TransportResetAtByte = "transport.reset-at-byte" ["B8"],
    /// The connection ends in the middle of the status line.
    TransportStatusLineCut = "transport.status-line-cut" ["C1"],
    /// The connection ends in the middle of the headers.
    TransportHeadersCut = "transport.headers-cut" ["C2"],
    /// The body is shorter than its `Content-Length`, and the connection ends.
    TransportLengthLong = "transport.length-long" ["C3"],
    /// The body is longer than its `Content-Length`.
    TransportLengthShort = "transport.length-short" ["C5"],
    /// `Content-Length: 0`, and a body.
    TransportLengthZero = "transport.length-zero" ["C6"],
    /// Two `Content-Length` headers that contradict each other.
    TransportTwoLengths = "transport.two-lengths" ["C7"],
    /// `Content-Length: -1`.
    TransportLengthNegative = "transport.length-negative" ["C8"],
    /// A `Content-Length` beyond 64 bits.
    TransportLengthOverflow = "transport.length-overflow" ["C8"],
    /// Both a `Content-Length` and chunks, of which the chunks are right.
    TransportLengthAndChunked = "transport.length-and-chunked" [],
    /// The connection ends before the last chunk.
    TransportChunkedCut = "transport.chunked-cut" ["C10"],
    /// The size of a chunk is no number.
    TransportBadChunkSize = "transport.bad-chunk-size" ["C11"],
    /// No length and no chunks, and the connection ends in the middle of the body.
    TransportCloseDelimitedCut = "transport.close-delimited-cut" ["C13"],
    /// A hundred and one headers.
    TransportHeaders101 = "transport.headers-101" ["C14"],
    /// A header of 500 KB.
    TransportGiantHeader = "transport.giant-header" ["C15"],
    /// A header whose name holds a space.
    TransportBadHeaderName = "transport.bad-header-name" ["C16"],
    /// A header whose value holds a NUL.
    TransportHeaderNul = "transport.header-nul" ["C16"],
    /// A header that goes on in the next line.
    TransportObsFold = "transport.obs-fold" ["C16"],
    /// Lines end in LF alone.
    TransportBareLf = "transport.bare-lf" ["C17"],
    /// Bytes that are no HTTP.
    TransportGarbage = "transport.garbage" ["C18"],
    /// The beginning of a TLS session.
    TransportTlsBytes = "transport.tls-bytes" ["C18"],
    /// The settings of an HTTP/2 connection.
    TransportH2Preface = "transport.h2-preface" ["C18"],
    /// Status 099.
    TransportStatus099 = "transport.status-099" ["C19"],
    /// Status 600.
    TransportStatus600 = "transport.status-600" ["C19"],
    /// Status 999.
    TransportStatus999 = "transport.status-999" ["C19"],
    /// A status line of HTTP/2.0.
    TransportHttp2Line = "transport.http2-line" ["C18"],
    /// Fifty `100 Continue` before the answer.
    TransportContinueStorm = "transport.continue-storm" ["C20"],
    /// Fifty `103 Early Hints` before the answer.
    TransportEarlyHintsStorm = "transport.early-hints-storm" ["C20"],
    /// `101 Switching Protocols`, which nobody asked for.
    TransportSwitchingProtocols = "transport.switching-protocols" ["C20"],
    /// 204 with a body.
    Transport204Body = "transport.204-body" ["C21"],
    /// 304 with a body.
    Transport304Body = "transport.304-body" ["C21"],
    /// A second answer behind the first, which nobody asked for.
    TransportExtraAnswer = "transport.extra-answer" [],
    /// The answer comes, and once more to the next request on its connection, whose own answer follows.
    TransportAnswerAgain = "transport.answer-again" [],
    /// The connection is kept alive, and ends right after the answer.
    TransportCloseAfter = "transport.close-after" ["B1"],
    /// The connection is kept alive, and ends when the next request comes.
    TransportCloseInRace = "transport.close-in-race" ["B2"],
    /// The answer comes, and every connection is reset at once.
    TransportMassReset = "transport.mass-reset" ["B16"],

    /// The request takes 20 ms.
    TimeUpConstant = "time.up-constant" [],
    /// The request takes up to half a millisecond.
    TimeUpLan = "time.up-lan" [],
    /// The request takes 1 to 3 ms, one in a hundred 20 ms.
    TimeUpCloud = "time.up-cloud" [],
    /// The request takes 10 to 60 ms, one in fifty a retransmission of 200 ms or more.
    TimeUpInternet = "time.up-internet" [],
    /// The request takes 0.1 to 3 s, one in ten longer than that.
    TimeUpBad = "time.up-bad" [],
    /// The request is overtaken by those that are sent within 50 ms of it.
    TimeUpReordered = "time.up-reordered" ["I6"],
    /// The answer takes 20 ms.
    TimeDownConstant = "time.down-constant" [],
    /// The answer takes up to half a millisecond.
    TimeDownLan = "time.down-lan" [],
    /// The answer takes 1 to 3 ms, one in a hundred 20 ms.
    TimeDownCloud = "time.down-cloud" [],
    /// The answer takes 10 to 60 ms, one in fifty a retransmission of 200 ms or more.
    TimeDownInternet = "time.down-internet" [],
    /// The answer takes 0.1 to 3 s, one in ten longer than that.
    TimeDownBad = "time.down-bad" [],
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name() {
        for &fault in Fault::ALL {
            assert_eq!(fault.as_str().parse(), Ok(fault));
        }
        let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.as_str()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
    }

    #[test]
    fn every_fault_says_in_a_sentence_what_it_does() {
        for &fault in Fault::ALL {
            assert!(fault.summary().ends_with('.'), "{fault}: {:?}", fault.summary());
        }
    }
}
