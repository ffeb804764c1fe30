//! Request bodies that can be sent more than once.

pub(crate) mod buffered_body;
pub(crate) mod layer;
pub(crate) mod replay;
