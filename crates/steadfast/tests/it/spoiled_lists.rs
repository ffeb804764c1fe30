//! Order lists spoiled in every way that the sandbox knows, for an order in doubt.

use steadfast_sandbox::Fault;

use crate::world::{World, script};

/// Creates a world where `placement` loses the first order's answer and `fault` spoils every list but
/// the first.
fn world(placement: &str, fault: Fault) -> World {
    World::new(script(&format!(
        "[[fault]]\nname = '{placement}'\nnth = 1\n\
         [[fault]]\nname = '{fault}'\nendpoint = 'orders'\nnth = 2\ntimes = 1000"
    )))
}

#[tokio::test(start_paused = true)]
async fn an_order_is_placed_once_at_most_and_never_invented_however_its_list_is_spoiled() {
    let (mut found, mut sent_again) = (0, 0);
    for &fault in Fault::ALL.iter().filter(|fault| matches!(fault.group(), "answer" | "transport")) {
        for placement in ["placement.504-applied", "placement.504-not-applied"] {
            let world = world(placement, fault);
            // A call in doubt ends with an answer or an error; an error names no order.
            let told = world.place("a").await.unwrap_or_default();
            let there: Vec<String> = world.placed().remove("a").unwrap_or_default();
            assert!(there.len() <= 1, "{placement} {fault}: {there:?}");
            assert!(
                told.is_none() || told.as_ref() == there.first(),
                "{placement} {fault}: {told:?}, {there:?}"
            );
            let arrived = world.sandbox.state().arrivals;
            let sends = arrived.iter().filter(|arrival| arrival.path.ends_with("/place-order")).count();
            assert!(
                placement.ends_with("not-applied") || sends == 1,
                "{fault}: an order that is there is sent again"
            );
            found += usize::from(told.is_some() && sends == 1);
            sent_again += usize::from(sends == 2);
            assert!(sends <= 2, "{fault}: sent {sends} times");
        }
    }
    // Some faults spoil nothing that matters.
    assert!(found > 5 && sent_again > 5, "{found} found, {sent_again} sent again");
}
