use std::io;

/// Returns 128 random bits, as 32 hexadecimal digits.
pub(crate) fn random_bits() -> io::Result<String> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bits)))
}
