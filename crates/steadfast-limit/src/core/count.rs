//! The ways of counting that a gateway may use, each as the first instant at which it admits one more request.

pub(crate) mod paced;
pub(crate) mod smoother;
pub(crate) mod spread;
pub(crate) mod universal;
