//! The version.

use http::{Method, Request};
use http_body_util::Full;
use steadfast::{BaseUrl, Outcome, call::Failure};

use crate::{
    wire::{Wire, ok},
    world::World,
};

#[test]
fn spec_9_client_takes_no_base_address_of_another_version() {
    for text in [
        "https://api.example",
        "https://api.example/v1",
        "https://api.example/V2",
        "https://api.example/v2/x",
    ] {
        assert!(text.parse::<BaseUrl>().is_err(), "{text}");
    }
    for text in ["https://api.example/v2", "https://api.example/tradeapi/v2/"] {
        assert!(text.parse::<BaseUrl>().is_ok(), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_9_client_a_request_beside_the_version_is_refused_before_it_is_sent() {
    let world = World::below("http://localhost/v2", Wire::scripted([ok("[]")]));
    for address in
        ["http://localhost/api/oms/orders", "http://localhost/v3/api/oms/orders", "http://localhost/v2x/a"]
    {
        let request = Request::builder().method(Method::GET).uri(address).body(Full::default()).unwrap();
        let refused = world.call(request).await.unwrap_err();
        assert_eq!(Failure::outcome_of(&*refused), Outcome::NotSent, "{address}");
    }
    assert_eq!(world.wire.seen().len(), 0);
}
