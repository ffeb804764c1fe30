use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Data shared by the spans of one call's sends: the template of its path, and the number of sends.
///
/// The outermost layer puts one into each [`Call`](crate::Call). Every repeat carries it on, whether it is due to the
/// policy, a renewed token, or the end of an order's doubt. Without it a span knows only the
/// [repeats](crate::Call::repeats) of the policy, and the templates of the paths that the specification shows.
///
/// # Example
///
/// ```
/// use steadfast_call::ext::Sends;
///
/// let sends = Sends::new("/api/oms/orders");
/// let repeat = sends.clone();
/// assert_eq!((sends.begin(), repeat.begin(), sends.begin()), (0, 1, 2));
/// assert_eq!(repeat.template(), "/api/oms/orders");
/// ```
///
/// # Clone
///
/// Clones share one count.
#[derive(Clone, Debug)]
pub struct Sends(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    template: Box<str>,
    begun: AtomicU32,
}

impl Sends {
    /// Creates a count of zero for a path of this template. The template is recorded as it is, so it must not contain a
    /// parameter's value.
    #[must_use]
    pub fn new(template: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Shared { template: template.into(), begun: AtomicU32::new(0) }))
    }

    /// Returns the template of the path.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.0.template
    }

    /// Counts a send. Returns how many there were before it.
    #[must_use = "the number tells a repeat from the first send"]
    pub fn begin(&self) -> u32 {
        self.0.begun.fetch_add(1, Ordering::Relaxed)
    }
}
