use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// What the spans of one call's sends share: the template of its path, and how many sends there were.
///
/// Whoever stands outermost puts one into the extensions of each call's request. Every repeat carries it on, whoever
/// makes it: the policy, a renewed token, or the end of an order's doubt. Without it a span knows the repeats of the
/// policy only, by its [`ResendCount`](crate::ext::ResendCount), and the templates of the paths that the specification
/// shows.
///
/// # Example
///
/// ```
/// use steadfast_spec::ext::Sends;
///
/// let sends = Sends::new("/api/oms/orders");
/// let repeat = sends.clone();
/// assert_eq!((sends.begin(), repeat.begin(), sends.begin()), (0, 1, 2));
/// assert_eq!(repeat.template(), "/api/oms/orders");
/// ```
///
/// # Clone
///
/// Clones count together.
#[derive(Clone, Debug)]
pub struct Sends(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    template: Box<str>,
    begun: AtomicU32,
}

impl Sends {
    /// No send so far, to a path of this template; it is recorded as it is, so it must hold no value of a parameter.
    #[must_use]
    pub fn new(template: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Shared { template: template.into(), begun: AtomicU32::new(0) }))
    }

    /// The template of the path.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.0.template
    }

    /// Counts a send; how many there were before it.
    #[must_use = "the count is what a send is counted for"]
    pub fn begin(&self) -> u32 {
        self.0.begun.fetch_add(1, Ordering::Relaxed)
    }
}

/// How many times a request has been sent again by the retry policy; in the extensions of every repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResendCount(pub u32);
