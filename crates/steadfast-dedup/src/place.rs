//! The outer layer: it opens an order's intent, waits for its verdict, and sends the order again where that is allowed.
//!
//! An order's call passes through [`service`], [`place_call`], which opens the intent, and [`place_loop`], which sends it
//! and waits. [`answer`] makes what the caller gets. [`future`] and [`shared_flow`] keep the call going if its caller does
//! not poll it. [`observe`] reads along where a caller reads the list.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod deadline;
pub(crate) mod future;
pub(crate) mod layer;
pub(crate) mod observe;
pub(crate) mod open_call;
pub(crate) mod order_form;
pub(crate) mod place_call;
pub(crate) mod place_loop;
pub(crate) mod service;
pub(crate) mod shared_flow;
