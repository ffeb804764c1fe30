//! Most prices have no binary float.

use steadfast_spec::OrderRequest;

fn main() {
    let _ = OrderRequest::builder().limit_price(1500.05);
}
