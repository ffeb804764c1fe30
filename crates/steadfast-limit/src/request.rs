//! The zones and keys under which a request is counted.

pub(crate) mod keys;
pub(crate) mod zones_of;
