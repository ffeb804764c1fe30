//! What stands in a stack in the place of the metrics' layers without the feature: nothing.

use tower::layer::util::Identity;

pub(crate) type CallMetricsLayer = Identity;
pub(crate) type QueuedLayer = Identity;
pub(crate) type AdmittedLayer = Identity;
pub(crate) type AttemptMetricsLayer = Identity;
