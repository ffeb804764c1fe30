//! What stands in a stack in the place of the metrics' layers without the feature: nothing.

use tower::layer::util::Identity;

pub(crate) use Identity as CallMetricsLayer;
pub(crate) use Identity as QueuedLayer;
pub(crate) use Identity as AdmittedLayer;
pub(crate) use Identity as AttemptMetricsLayer;
