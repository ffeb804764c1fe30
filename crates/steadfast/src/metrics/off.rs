//! Stand-ins for the metrics layers without the feature; they do nothing.

use tower::layer::util::Identity;

pub(crate) type CallMetricsLayer = Identity;
pub(crate) type QueuedLayer = Identity;
pub(crate) type AdmittedLayer = Identity;
pub(crate) type AttemptMetricsLayer = Identity;
