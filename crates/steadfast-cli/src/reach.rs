//! The first connection to a service, so that a failure is reported at once.

use std::time::Duration;

use steadfast::{BaseUrl, Transport};

use crate::exit::{Failed, print_note};

/// The pauses between attempts, as in the stack.
const PAUSES: [u64; 4] = [1, 2, 4, 8];

/// Makes one connection to the service, and sends nothing over it.
///
/// Orders and logins would be repeated for as long without a message. A mistyped port should be reported at once.
pub(crate) async fn reach(base: &BaseUrl) -> Result<(), Failed> {
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
