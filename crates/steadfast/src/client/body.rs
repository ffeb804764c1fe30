use std::{error::Error, fmt};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use steadfast_call::{BoxError, causes, one_line};

/// The body of a raw answer.
pub type Body = UnsyncBoxBody<Bytes, BrokenBody>;

/// The error of a raw answer's body that broke off.
///
/// It is a type of its own because a future with a boxed error in its type cannot be spawned.
#[derive(Debug)]
pub struct BrokenBody(pub(super) BoxError);

impl fmt::Display for BrokenBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        f.write_str("answer's body broke off")
    }
}

impl Error for BrokenBody {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
