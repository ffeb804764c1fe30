/// Returns the seed of one part of one session, from the campaign's seed, the session's number and a name.
///
/// FNV-1a over the three, then a finisher that separates neighbours.
pub(super) fn derive(seed: u64, number: u64, name: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(number.to_le_bytes()).chain(name.bytes());
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_depend_on_all_three_and_on_nothing_else() {
        assert_eq!(derive(1, 2, "line"), derive(1, 2, "line"));
        let others = [derive(2, 1, "line"), derive(1, 3, "line"), derive(1, 2, "lane")];
        assert!(others.iter().all(|other| *other != derive(1, 2, "line")));
    }
}
