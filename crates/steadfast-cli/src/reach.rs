//! The first connection to a service: what keeps it from being made is told at once.

use std::time::Duration;

use steadfast::{BaseUrl, Transport};

use crate::exit::{Failed, print_note};

/// How long to wait before it is tried again, as the stack does.
const PAUSES: [u64; 4] = [1, 2, 4, 8];

/// Makes one connection to the service, and sends nothing over it.
///
/// Orders and logins would be repeated for as long without a word: whoever has mistyped a port should not have to wait for
/// that.
pub(crate) async fn reach(base: &BaseUrl) -> Result<(), Failed> {
    if steadfast_spec::Planted::RefusedPortSilent.is_on() {
        return Ok(());
    }
    let transport = Transport::new();
    let mut pauses = PAUSES.into_iter();
    loop {
        let Err(error) = transport.reach(base).await else { return Ok(()) };
        let Some(pause) = pauses.next() else {
            return Err(Failed::unavailable(format_args!("{error}; nothing was sent")));
        };
        print_note(format_args!("steadfast: {error}; trying again in {pause} s"));
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
}
