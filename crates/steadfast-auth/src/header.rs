mod future;
mod layer;
mod service;

pub use self::{
    future::ResponseFuture,
    layer::{AuthHeaderLayer, CallersHeader},
    service::AuthHeader,
};
