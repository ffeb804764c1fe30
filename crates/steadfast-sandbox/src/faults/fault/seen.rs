use super::Fault;

/// The view that an HTTP/1 client on hyper has of a transport fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Seen {
    /// A complete answer. Its status may be the fault's, and its body empty if that status has none.
    Whole,
    /// The complete answer, at the fault's pace.
    Slow,
    /// A part of the body and no error; only the JSON shows it.
    SilentlyCut,
    /// A head, and then an error.
    BodyBroken,
    /// A head, and then nothing until a deadline.
    BodyStalls,
    /// Nothing until a deadline.
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
    /// Returns what a client on hyper sees of a transport fault; `None` for faults that are well-formed
    /// HTTP.
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
            // Half a megabyte exceeds hyper's default limit for a head.
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
