/// A request body that can be sent more than once.
///
/// Every `Clone` body is one. A stream is not, unless [`BufferBody`](crate::BufferBody) has read it first.
pub trait Replay: Sized {
    /// The same body once more; `None` if it can be sent only once. It is never an empty body instead.
    fn replay(&self) -> Option<Self>;
}

impl<B: Clone> Replay for B {
    fn replay(&self) -> Option<Self> {
        Some(self.clone())
    }
}
