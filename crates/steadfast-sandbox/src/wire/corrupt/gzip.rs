use std::sync::LazyLock;

use bytes::Bytes;

/// How often 258 zeros are repeated: 16 MiB of them.
const REPEATS: u32 = 65_028;

/// Returns 16 MiB of zeros as gzip (RFC 1951, RFC 1952): one hand-made block with the fixed codes.
pub(super) fn bomb() -> Bytes {
    static BOMB: LazyLock<Bytes> = LazyLock::new(|| {
        let mut bits = Bits { bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], free: 0 };
        // The last block, of the kind with fixed codes; then a literal zero.
        for bit in [1, 1, 0] {
            bits.push(bit);
        }
        bits.code(0b0011_0000, 8);
        for _ in 0..REPEATS {
            // Length 258, distance 1.
            bits.code(0b1100_0101, 8);
            bits.code(0, 5);
        }
        bits.code(0, 7);
        let zeros = 1 + 258 * REPEATS;
        let mut bytes = bits.bytes;
        bytes.extend_from_slice(&crc_of_zeros(zeros).to_le_bytes());
        bytes.extend_from_slice(&zeros.to_le_bytes());
        bytes.into()
    });
    BOMB.clone()
}

/// Bytes that are filled from their lowest bit.
struct Bits {
    bytes: Vec<u8>,
    /// How many bits of the last byte are still free.
    free: u32,
}

impl Bits {
    fn push(&mut self, bit: u8) {
        if self.free == 0 {
            self.bytes.push(0);
            self.free = 8;
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= bit << (8 - self.free);
        }
        self.free -= 1;
    }

    /// Appends a Huffman code, highest bit first.
    fn code(&mut self, code: u8, length: u32) {
        for place in (0..length).rev() {
            self.push((code >> place) & 1);
        }
    }
}

fn crc_of_zeros(length: u32) -> u32 {
    let mut table = [0_u32; 256];
    for (value, entry) in (0..).zip(&mut table) {
        *entry =
            (0..8).fold(value, |crc: u32, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 });
    }
    !(0..length).fold(u32::MAX, |crc, _| table[(crc & 0xff) as usize] ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_of_gzip() {
        // From the standard tools, for four zeros and for none.
        assert_eq!((crc_of_zeros(4), crc_of_zeros(0)), (0x2144_df1c, 0));
    }

    #[test]
    fn a_hundred_kilobytes_stand_for_sixteen_megabytes() {
        let bomb = bomb();
        assert!((100_000..110_000).contains(&bomb.len()), "{}", bomb.len());
        let length = u32::from_le_bytes(bomb[bomb.len() - 4..].try_into().unwrap());
        assert_eq!(length, 16_777_225);
    }
}
