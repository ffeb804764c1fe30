use std::{collections::VecDeque, fmt, time::Duration};

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha1::Sha1;

use crate::secret::InvalidSecret;

/// The length of a time step (RFC 6238, the default X).
const STEP_MS: i64 = 30_000;
/// A code with less time left than this may be stale when it arrives.
const LEAST_LEFT_MS: i64 = 4_000;
/// A worse estimate than this would leave no time in a step.
const LARGEST_MARGIN_MS: i64 = 3_000;
/// RFC 4226 asks for 128 bits; services hand out 80.
const RECOMMENDED_BYTES: usize = 16;
/// How many time steps are kept. Two clocks that differ by a quarter of an hour still see each other's steps.
const REMEMBERED: usize = 64;

/// The secret behind an authenticator app's codes, from its base32 text.
///
/// Secrets shorter than the 128 bits that RFC 4226 asks for are accepted with a warning, because services hand
/// them out.
#[derive(Clone)]
pub struct TotpSecret(SecretSlice<u8>);

impl TotpSecret {
    /// Reads base32 text. Case, spaces, dashes and padding do not matter.
    ///
    /// # Errors
    ///
    /// [`InvalidSecret::TotpSecret`] if it is empty or not base32. The error does not show the text.
    pub fn new(text: impl Into<SecretString>) -> Result<Self, InvalidSecret> {
        let text = text.into();
        let plain: SecretString = text
            .expose_secret()
            .chars()
            .filter(|c| !matches!(c, ' ' | '-' | '='))
            .map(|c| c.to_ascii_uppercase())
            .collect::<String>()
            .into();
        let mut lenient = BASE32_NOPAD.specification();
        // Apps do not check the unused bits of the last character, so this must not either.
        lenient.check_trailing_bits = false;
        let encoding = lenient.encoding().map_err(|_| InvalidSecret::TotpSecret)?;
        let bytes =
            encoding.decode(plain.expose_secret().as_bytes()).map_err(|_| InvalidSecret::TotpSecret)?;
        if bytes.is_empty() {
            return Err(InvalidSecret::TotpSecret);
        }
        if bytes.len() < RECOMMENDED_BYTES {
            tracing::warn!(bits = bytes.len() * 8, "totp secret is shorter than the recommended 128 bits");
        }
        Ok(Self(bytes.into()))
    }

    /// The secret's bytes, to be hashed.
    pub(crate) fn expose(&self) -> &[u8] {
        self.0.expose_secret()
    }

    /// Returns the six-digit code of a time step (RFC 6238 with SHA-1).
    pub(crate) fn code(&self, step: u64) -> SecretString {
        format!("{:06}", truncated(self.0.expose_secret(), step) % 1_000_000).into()
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret([REDACTED])")
    }
}

/// The dynamic truncation of RFC 4226, section 5.3.
fn truncated(key: &[u8], counter: u64) -> u32 {
    #[expect(
        clippy::expect_used,
        reason = "hmac takes keys of every length; its error type is for block ciphers"
    )]
    let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("hmac takes a key of any length");
    mac.update(&counter.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest[19] & 0x0f);
    let [a, b, c, d] = [digest[offset], digest[offset + 1], digest[offset + 2], digest[offset + 3]];
    u32::from_be_bytes([a & 0x7f, b, c, d])
}

/// The time steps whose codes have been submitted for one account. A code is never sent twice.
///
/// It is a set, not a high-water mark: the corrected and the uncorrected clock may be several steps apart, and trying
/// the earlier one must stay possible.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsedSteps(VecDeque<u64>);

impl UsedSteps {
    /// Returns the step whose code may be submitted at `now_ms` of the code's clock, which is off by at most
    /// `margin_ms`. Otherwise returns how long to wait before asking again.
    pub(crate) fn usable(&self, now_ms: i64, margin_ms: i64) -> Result<u64, Duration> {
        let margin = margin_ms.clamp(0, LARGEST_MARGIN_MS);
        let passed = now_ms.rem_euclid(STEP_MS);
        let left = STEP_MS - passed;
        let wait = |ms: i64| Err(Duration::from_millis(ms.unsigned_abs()));
        match u64::try_from(now_ms.div_euclid(STEP_MS)) {
            // The service may still be in the step before.
            Ok(step) if passed < margin && !self.0.contains(&step) => wait(margin - passed),
            Ok(step) if left >= LEAST_LEFT_MS && !self.0.contains(&step) => Ok(step),
            _ => wait(left + margin),
        }
    }

    /// Records that the step's code is about to be submitted.
    pub(crate) fn claim(&mut self, step: u64) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(step);
    }

    /// Records a step that another process has used.
    pub(crate) fn note(&mut self, step: u64) {
        if !self.0.contains(&step) {
            self.claim(step);
        }
    }

    /// Takes a claim back, for a code that certainly never left.
    pub(crate) fn release(&mut self, step: u64) {
        self.0.retain(|&used| used != step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_6238_hold() {
        let key = b"12345678901234567890";
        for (seconds, code) in [
            (59_u64, 94_287_082_u32),
            (1_111_111_109, 7_081_804),
            (1_111_111_111, 14_050_471),
            (1_234_567_890, 89_005_924),
            (2_000_000_000, 69_279_037),
            (20_000_000_000, 65_353_130),
        ] {
            assert_eq!(truncated(key, seconds / 30) % 100_000_000, code, "at {seconds} s");
        }
    }

    #[test]
    fn the_vectors_of_rfc_4226_hold_with_six_digits() {
        let secret = TotpSecret::new("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ").unwrap();
        for (counter, code) in ["755224", "287082", "359152", "969429", "338314", "254676"].iter().enumerate()
        {
            assert_eq!(secret.code(counter as u64).expose_secret(), *code);
        }
    }

    #[test]
    fn no_step_of_a_while_is_used_again() {
        let mut used = UsedSteps::default();
        for step in [1, 2, 3] {
            used.claim(step);
        }
        for step in 1..=3 {
            assert!(used.usable(step * STEP_MS, 0).is_err(), "{step}");
        }
        assert_eq!(used.usable(4 * STEP_MS, 0), Ok(4));
    }

    #[test]
    fn a_code_keeps_its_leading_zeros() {
        let secret = TotpSecret::new("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ").unwrap();
        assert_eq!(secret.code(1_111_111_109 / 30).expose_secret(), "081804");
    }

    /// T18: unlike clients that refuse the 80-bit secrets that services hand out.
    #[test]
    fn t18_an_80_bit_secret_is_accepted() {
        assert!(TotpSecret::new("JBSWY3DPEHPK3PXP").is_ok());
    }

    #[test]
    fn a_secret_is_read_as_people_copy_it_and_never_echoed() {
        let code = |text: &str| TotpSecret::new(text).unwrap().code(1).expose_secret().to_owned();
        let plain = code("JBSWY3DPEHPK3PXP");
        for text in ["jbsw y3dp ehpk 3pxp", "JBSW-Y3DP-EHPK-3PXP", "JBSWY3DPEHPK3PXP======"] {
            assert_eq!(code(text), plain);
        }
        for text in ["", " = ", "0189", "JBSWY3DPEHPK3PX!"] {
            assert_eq!(TotpSecret::new(text).unwrap_err(), InvalidSecret::TotpSecret);
        }
    }

    #[test]
    fn a_step_with_less_than_four_seconds_left_waits_for_the_next() {
        let used = UsedSteps::default();
        assert_eq!(used.usable(26_000, 0), Ok(0));
        assert_eq!(used.usable(26_001, 0), Err(Duration::from_millis(3_999)));
        assert_eq!(used.usable(30_000, 0), Ok(1));
    }

    #[test]
    fn an_uncertain_clock_does_not_use_a_step_before_the_service_is_in_it() {
        let used = UsedSteps::default();
        assert_eq!(used.usable(30_499, 500), Err(Duration::from_millis(1)));
        assert_eq!(used.usable(30_500, 500), Ok(1));
        assert_eq!(used.usable(26_001, 500), Err(Duration::from_millis(4_499)));
        assert_eq!(used.usable(33_000, i64::MAX), Ok(1), "a useless estimate does not stop logins");
    }

    #[test]
    fn a_claimed_step_is_not_usable_until_it_is_released() {
        let mut used = UsedSteps::default();
        used.claim(1);
        assert_eq!(used.usable(31_000, 0), Err(Duration::from_secs(29)));
        assert_eq!(used.usable(1_000, 0), Ok(0), "the other clock's earlier step stays possible");
        used.release(1);
        assert_eq!(used.usable(31_000, 0), Ok(1));
    }
}
