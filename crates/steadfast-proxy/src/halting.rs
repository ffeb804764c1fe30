//! The kill switch of an operator: that of this sidecar, and that of all which share its orders.

use http::{Response, StatusCode};

use crate::{
    answer::{AnswerBody, text},
    proxy::Proxy,
    sharing::NotResumed,
};

/// Halts this sidecar at once, and then all that share its orders.
pub(crate) async fn halt(proxy: &Proxy) -> Response<AnswerBody> {
    proxy.forward.switch.halt();
    let Some(shared) = proxy.forward.shared.get() else { return text(StatusCode::OK, "halted\n") };
    let (halting, proxy) = (shared.halt(), proxy.clone());
    // A task of its own, so that an operator who does not wait ends nothing.
    let halted =
        tokio::spawn(async move { halting.await.inspect(|()| proxy.forward.switch.hand_over_halt()) });
    match halted.await.unwrap_or_else(|_| Err("it was interrupted".to_owned())) {
        Ok(()) => text(StatusCode::OK, "halted\n"),
        Err(why) => {
            let told = format!("halted here; another sidecar may place orders: {why}\n");
            text(StatusCode::SERVICE_UNAVAILABLE, told)
        }
    }
}

/// Lets orders leave again: here, unless something else keeps them back, and at all that share the orders.
pub(crate) async fn resume(proxy: &Proxy) -> Response<AnswerBody> {
    let switch = &proxy.forward.switch;
    match switch.resume() {
        Ok(()) => {}
        // Orders that waited when the proxy was told to end must not leave.
        Err(why) if !switch.is_running() => {
            return text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
        }
        Err(why) => return text(StatusCode::CONFLICT, format!("{why}\n")),
    }
    let Some(shared) = proxy.forward.shared.get() else { return text(StatusCode::OK, "trading\n") };
    // As above.
    let resumed = tokio::spawn(shared.resume());
    match resumed.await.unwrap_or_else(|_| Err(NotResumed::NotHeard("it was interrupted".to_owned()))) {
        Ok(()) => text(StatusCode::OK, "trading\n"),
        Err(NotResumed::HaltedAgain { halt }) => {
            let told = format!(
                "halted: another sidecar has halted meanwhile, by halt {halt}; resume again to end that\n"
            );
            text(StatusCode::CONFLICT, told)
        }
        Err(NotResumed::NotHeard(why)) => {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("a halt of all sidecars may still hold: {why}\n"))
        }
    }
}
