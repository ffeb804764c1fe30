use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// The length of a time step (RFC 6238, §4.1).
const STEP: Duration = Duration::from_secs(30);

/// Returns the number of the time step at the wall-clock time `wall`, since the Unix epoch.
pub(crate) fn step_at(wall: Duration) -> u64 {
    wall.as_secs() / STEP.as_secs()
}

/// Returns the six digits for one time step (RFC 6238 with SHA-1, RFC 4226 §5.3).
pub(crate) fn code(secret: &[u8], step: u64) -> String {
    // HMAC takes keys of any length, so the other arm is never reached. An empty code matches nothing.
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(secret) else { return String::new() };
    mac.update(&step.to_be_bytes());
    let digest: [u8; 20] = mac.finalize().into_bytes().into();
    let offset = usize::from(digest[19] & 0x0f);
    let word = digest[offset..offset + 4].iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte));
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_6238_hold() {
        for (seconds, expected) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(code(b"12345678901234567890", step_at(Duration::from_secs(seconds))), expected);
        }
    }
}
