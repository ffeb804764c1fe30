//! The effects of the faults that strike the placement of an order.

use http::StatusCode;
use steadfast_spec::OrderStatus;

use crate::faults::Fault;

/// The effect of a placement fault on the order itself.
#[derive(Clone, Copy)]
pub(super) enum Application {
    Now,
    Twice,
    Late,
    Never,
}

pub(super) fn application(fault: Fault) -> Application {
    match fault {
        Fault::PlacementDoubleForward => Application::Twice,
        Fault::Placement200Error | Fault::Placement400BadRequest | Fault::Placement400Validation => {
            Application::Never
        }
        Fault::Placement200Truncated | Fault::Placement200NoOrderId => Application::Now,
        fault if fault.as_str().ends_with("-not-applied") => Application::Never,
        fault if fault.as_str().ends_with("-late") => Application::Late,
        _ => Application::Now,
    }
}

/// Returns the status with which an intermediary answers in the gateway's place.
pub(super) fn intermediary(fault: Fault) -> Option<StatusCode> {
    let (status, _) = fault.as_str().strip_prefix("placement.proxy-")?.split_once('-')?;
    status.parse().ok()
}

/// Returns true if the answer has the id of the previous order.
pub(super) fn repeats_id(fault: Fault) -> bool {
    matches!(fault, Fault::PlacementRepeatedIdApplied | Fault::PlacementRepeatedIdNotApplied)
}

/// Returns the id of no order, if the answer has one.
pub(super) fn invented_id(fault: Fault, request: u64) -> Option<String> {
    let invents = matches!(fault, Fault::PlacementInventedIdApplied | Fault::PlacementInventedIdNotApplied);
    invents.then(|| format!("88{request:010}"))
}

/// Returns the status in which a fault books an order.
pub(super) fn booked_as(fault: Fault) -> Option<OrderStatus> {
    match fault {
        Fault::PlacementBookedCompleted => Some(OrderStatus::Completed),
        Fault::PlacementBookedRejected => Some(OrderStatus::Rejected),
        Fault::PlacementBookedCancelled => Some(OrderStatus::Cancelled),
        _ => None,
    }
}
