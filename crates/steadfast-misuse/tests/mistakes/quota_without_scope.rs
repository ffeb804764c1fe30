//! A quota must say for whom the service counts.

use steadfast_limit::{Quota, SECOND, Zone};

fn main() {
    let _ = Quota::new(Zone::new("weather")).limit(5, SECOND);
}
