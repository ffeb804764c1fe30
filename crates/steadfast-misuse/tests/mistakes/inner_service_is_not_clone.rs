//! The limiter waits, and calls a clone of the inner service afterwards.

use steadfast_limit::ZoneLimiter;
use tower::Layer;

struct Connection;

fn main() {
    let service = ZoneLimiter::preset().layer().layer(Connection);
}
