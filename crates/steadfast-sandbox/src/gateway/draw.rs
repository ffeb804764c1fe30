use sha1::{Digest, Sha1};

/// The sandbox's only source of random values. A value depends only on the seed, a label and a key.
///
/// There is no state, so the draws of one client never change those of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    seed: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns twenty bytes for (seed, label, key).
    fn digest(self, label: &str, key: &str) -> [u8; 20] {
        let mut hash = Sha1::new();
        hash.update(self.seed.to_le_bytes());
        hash.update((label.len() as u64).to_le_bytes());
        hash.update(label);
        hash.update(key);
        hash.finalize().into()
    }

    /// Returns a number from zero up to, but not including, one.
    pub(crate) fn fraction(self, label: &str, key: &str) -> f64 {
        let [a, b, c, d, e, f, g, h, ..] = self.digest(label, key);
        // The 53 bits that a float holds exactly.
        (u64::from_le_bytes([a, b, c, d, e, f, g, h]) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `n`; zero if `n` is zero.
    pub(crate) fn below(self, label: &str, key: &str, n: u64) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.digest(label, key);
        u64::from_le_bytes([a, b, c, d, e, f, g, h]).checked_rem(n).unwrap_or_default()
    }

    /// Returns a text of forty lowercase hexadecimal digits.
    pub(crate) fn text(self, label: &str, key: &str) -> String {
        data_encoding::HEXLOWER.encode(&self.digest(label, key))
    }

    /// Returns twenty bytes as a base32 secret of 160 bits.
    pub(crate) fn base32(self, label: &str, key: &str) -> String {
        data_encoding::BASE32_NOPAD.encode(&self.digest(label, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_seed_label_and_key_and_on_nothing_else() {
        let draw = Draw::new(7);
        assert_eq!(draw.text("token", "1"), Draw::new(7).text("token", "1"));
        assert_ne!(draw.text("token", "1"), Draw::new(8).text("token", "1"));
        assert_ne!(draw.text("token", "1"), draw.text("token", "2"));
        assert_ne!(draw.text("token", "1"), draw.text("toke", "n1"));
    }

    #[test]
    fn fractions_are_spread_over_the_unit_interval() {
        let draw = Draw::new(1);
        let below_a_third = (0..3_000).filter(|i| draw.fraction("x", &i.to_string()) < 1.0 / 3.0).count();
        assert!((850..1_150).contains(&below_a_third), "{below_a_third}");
    }
}
