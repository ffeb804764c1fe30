//! The outer layer: it opens an order's intent, waits for its verdict, and sends the order again where that is allowed.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod deadline;
pub(crate) mod future;
pub(crate) mod layer;
pub(crate) mod observe;
pub(crate) mod order_form;
pub(crate) mod place_call;
pub(crate) mod place_loop;
pub(crate) mod service;
pub(crate) mod shared_flow;
