use steadfast_call::Lane;

/// True for the lanes that get a trader out of a position or tell whether there is one.
pub(crate) fn must_get_out(lane: Lane) -> bool {
    lane <= Lane::Verification
}

/// True if requests without an answer hold back `lane` for little more than a window. No lane is exempt in a limiter with
/// [`strict_critical`](crate::Builder::strict_critical).
pub(crate) fn is_exempt(lane: Lane, strict: bool) -> bool {
    !strict && must_get_out(lane)
}

/// True for the lanes that can wait and are smoothed over the long windows.
pub(crate) fn is_smoothed(lane: Lane) -> bool {
    lane >= Lane::Normal || lane == Lane::Verification
}
