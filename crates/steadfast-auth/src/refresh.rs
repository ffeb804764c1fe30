mod future;
mod layer;
mod service;

pub use self::{future::ResponseFuture, layer::RefreshLayer, service::Refresh};
