/// A request body that can be sent more than once.
///
/// Every `Clone` body is one. A stream is one only after [`BufferBody`](crate::BufferBody) has read it.
pub trait Replay: Sized {
    /// Returns the same body once more, or `None` if it can be sent only once. Never returns an empty body instead.
    fn replay(&self) -> Option<Self>;
}

impl<B: Clone> Replay for B {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}
