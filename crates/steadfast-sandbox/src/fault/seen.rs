use super::Fault;

/// What an HTTP/1 client on hyper makes of the bytes of a transport fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Seen {
    /// An answer in one piece. Its status may be the fault's, and its body empty where that status has none.
    Whole,
    /// The answer in one piece, at the pace of the fault.
    Slow,
    /// A part of the body, and no error: only its JSON can tell.
    SilentlyCut,
    /// A head, and then an error.
    BodyBroken,
    /// A head, and then nothing: only a deadline ends it.
    BodyStalls,
    /// Nothing: only a deadline ends it.
    HeadStalls,
    /// An error of parsing, although the request was executed.
    Unparsable,
    /// Too many headers, or too long ones.
    TooLarge,
    /// "connection closed before message completed", which proves nothing.
    Incomplete,
    /// The connection was reset.
    Reset,
}

impl Fault {
    /// What a client on hyper makes of a transport fault; `None` for faults that are well-formed HTTP.
    #[must_use]
    pub fn seen(self) -> Option<Seen> {
        Some(match self {
            Self::TransportSlowLoris => Seen::Slow,
            Self::TransportFin
            | Self::TransportHalfClose
            | Self::TransportStatusLineCut
            | Self::TransportHeadersCut => Seen::Incomplete,
            Self::TransportNoAnswer => Seen::HeadStalls,
            Self::TransportStallAfterHead | Self::TransportStallInBody => Seen::BodyStalls,
            Self::TransportResetAtByte => Seen::Reset,
            Self::TransportLengthLong | Self::TransportChunkedCut | Self::TransportBadChunkSize => {
                Seen::BodyBroken
            }
            Self::TransportLengthShort
            | Self::TransportLengthZero
            | Self::TransportCloseDelimitedCut
            | Self::Transport204Body
            | Self::Transport304Body => Seen::SilentlyCut,
            Self::TransportTwoLengths
            | Self::TransportLengthNegative
            | Self::TransportLengthOverflow
            | Self::TransportBadHeaderName
            | Self::TransportHeaderNul
            | Self::TransportObsFold
            | Self::TransportGarbage
            | Self::TransportTlsBytes
            | Self::TransportH2Preface
            | Self::TransportStatus099
            | Self::TransportHttp2Line => Seen::Unparsable,
            // Half a megabyte is more than what hyper keeps of a head by default.
            Self::TransportHeaders101 | Self::TransportGiantHeader => Seen::TooLarge,
            Self::TransportLengthAndChunked
            | Self::TransportBareLf
            | Self::TransportStatus600
            | Self::TransportStatus999
            | Self::TransportContinueStorm
            | Self::TransportEarlyHintsStorm
            | Self::TransportSwitchingProtocols
            | Self::TransportExtraAnswer
            | Self::TransportAnswerAgain
            | Self::TransportCloseAfter
            | Self::TransportCloseInRace
            | Self::TransportMassReset => Seen::Whole,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_transport_faults_say_what_is_seen_of_them() {
        for fault in Fault::ALL {
            assert_eq!(fault.seen().is_some(), fault.group() == "transport", "{fault}");
        }
    }
}
