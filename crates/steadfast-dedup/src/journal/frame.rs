//! Reads and writes the bytes of a log.
//!
//! | bytes | head | | bytes | record |
//! |---|---|---|---|---|
//! | 8 | `stdfjrnl` | | 4 | length of the payload |
//! | 4 | format version | | 4 | checksum of all the rest |
//! | 4 | checksum of all the rest | | 8 | number, from zero, without gaps |
//! | 8 | nonce, drawn for this file | | 8 | how many records were durable when it was written |
//! | 16 | salt, drawn for this journal | | | payload |
//! | 8 | how many records were there before the file was | | | |
//!
//! Numbers are little-endian. Checksums of records start from the nonce, so a record of another file is never taken
//! for one of this file, even if a disk puts it here. The salt outlives the file: sessions are hashed with it.

use crc32fast::Hasher;

pub(super) const MAGIC: [u8; 8] = *b"stdfjrnl";
pub(super) const VERSION: u32 = 1;
pub(super) const HEAD: usize = 48;
const PREFIX: usize = 24;
/// No record is longer: an order's form has at most 64 KiB and its name 1 KiB, and each is written once. A longer one is not
/// written ([`JournalError::TooLong`](super::JournalError::TooLong)).
pub(super) const MAX_PAYLOAD: usize = 1024 * 1024;

pub(crate) type Salt = [u8; 16];

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) salt: Salt,
    pub(super) nonce: u64,
    /// Records that were synced before the file got its name. All of them must be there.
    pub(super) records: u64,
}

/// Why a file's head is not that of a journal of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHead {
    Foreign,
    Version(u32),
}

impl Head {
    pub(super) fn encode(self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&self.nonce.to_le_bytes());
        head[24..40].copy_from_slice(&self.salt);
        head[40..].copy_from_slice(&self.records.to_le_bytes());
        let sum = sum_of_head(&head);
        head[12..16].copy_from_slice(&sum.to_le_bytes());
        head
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, BadHead> {
        let head: &[u8; HEAD] = bytes.first_chunk().ok_or(BadHead::Foreign)?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if head[..8] != MAGIC || number(12) != sum_of_head(head) {
            return Err(BadHead::Foreign);
        }
        // Checked after the sum, so that a flipped bit is not taken for another version.
        if number(8) != VERSION {
            return Err(BadHead::Version(number(8)));
        }
        let mut salt = Salt::default();
        salt.copy_from_slice(&head[24..40]);
        Ok(Self { salt, nonce: long(16), records: long(40) })
    }

    /// Returns the start value of the checksums of the file's records.
    pub(super) fn seed(self) -> u32 {
        crc32fast::hash(&self.nonce.to_le_bytes())
    }
}

fn sum_of_head(head: &[u8; HEAD]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(&head[..12]);
    sum.update(&head[16..]);
    sum.finalize()
}

/// Appends a record to `out`.
pub(super) fn write(out: &mut Vec<u8>, seed: u32, number: u64, durable: u64, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut rest = [0; 16];
    rest[..8].copy_from_slice(&number.to_le_bytes());
    rest[8..].copy_from_slice(&durable.to_le_bytes());
    let mut sum = Hasher::new_with_initial(seed);
    sum.update(&length);
    sum.update(&rest);
    sum.update(payload);
    out.extend_from_slice(&length);
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&rest);
    out.extend_from_slice(payload);
}

/// A whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) number: u64,
    pub(super) durable: u64,
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the record at the start of `bytes`, if it is whole.
    fn at(bytes: &'a [u8], seed: u32) -> Option<Self> {
        let (prefix, rest) = bytes.split_first_chunk::<PREFIX>()?;
        let [l0, l1, l2, l3, s0, s1, s2, s3, stamps @ ..] = prefix;
        let length = usize::try_from(u32::from_le_bytes([*l0, *l1, *l2, *l3])).ok()?;
        // No record is empty, so zeros are not a record.
        if length == 0 || length > MAX_PAYLOAD {
            return None;
        }
        let payload = rest.get(..length)?;
        let number = u64::from_le_bytes(*stamps.first_chunk()?);
        let durable = u64::from_le_bytes(*stamps.last_chunk()?);
        // A cheap check that avoids most checksums when a damaged file is searched.
        if durable > number {
            return None;
        }
        let mut sum = Hasher::new_with_initial(seed);
        sum.update(&prefix[..4]);
        sum.update(stamps);
        sum.update(payload);
        let fits = sum.finalize() == u32::from_le_bytes([*s0, *s1, *s2, *s3]);
        fits.then_some(Self { number, durable, payload })
    }

    fn size(&self) -> usize {
        PREFIX + self.payload.len()
    }
}

/// The content at the place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// The next record.
    Record { offset: usize, payload: &'a [u8] },
    /// Records that were never reported durable are missing here.
    Gap,
}

/// Reads every record that can be believed.
///
/// After a crash, records that were not durable may be missing, torn or replaced by older content of the disk. A
/// durable record is missing only if the medium has failed; a later record then shows that it was durable.
///
/// # Errors
///
/// The offset of the damage if a durable record is missing.
pub(super) fn scan(bytes: &[u8], head: Head) -> Result<Vec<Found<'_>>, usize> {
    let (seed, mut found) = (head.seed(), Vec::new());
    let (mut at, mut next) = (HEAD, 0);
    while at < bytes.len() {
        match Frame::at(&bytes[at..], seed) {
            // The second copy of a record.
            Some(frame) if frame.number < next => at += frame.size(),
            Some(frame) if frame.number == next => {
                found.push(Found::Record { offset: at, payload: frame.payload });
                next += 1;
                at += frame.size();
            }
            _ => {
                let rest = rest(bytes, at, seed);
                let damaged = next < head.records || rest.iter().any(|(_, frame)| frame.durable > next);
                if damaged {
                    return Err(at);
                }
                salvage(rest, next, &mut found);
                break;
            }
        }
    }
    if next < head.records {
        return Err(bytes.len());
    }
    Ok(found)
}

/// Returns every whole record from `at` on, at any offset.
fn rest(bytes: &[u8], mut at: usize, seed: u32) -> Vec<(usize, Frame<'_>)> {
    let mut rest = Vec::new();
    while at < bytes.len() {
        match Frame::at(&bytes[at..], seed) {
            Some(frame) => {
                rest.push((at, frame));
                at += frame.size();
            }
            None => at += 1,
        }
    }
    rest
}

// A whole record behind the damage was written, whether or not it was ever reported durable.
fn salvage<'a>(rest: Vec<(usize, Frame<'a>)>, mut next: u64, found: &mut Vec<Found<'a>>) {
    for (offset, frame) in rest {
        if frame.number < next {
            continue;
        }
        if frame.number > next {
            found.push(Found::Gap);
        }
        found.push(Found::Record { offset, payload: frame.payload });
        next = frame.number + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Head = Head { salt: *b"0123456789abcdef", nonce: 7, records: 0 };

    fn file(records: &[(u64, u64, &str)]) -> Vec<u8> {
        let mut bytes = HERE.encode().to_vec();
        for (number, durable, payload) in records {
            write(&mut bytes, HERE.seed(), *number, *durable, payload.as_bytes());
        }
        bytes
    }

    fn texts(bytes: &[u8]) -> Result<Vec<String>, usize> {
        let found = scan(bytes, Head::decode(bytes).unwrap())?;
        let text = |found: &Found<'_>| match found {
            Found::Record { payload, .. } => String::from_utf8(payload.to_vec()).unwrap(),
            Found::Gap => "-".to_owned(),
        };
        Ok(found.iter().map(text).collect())
    }

    #[test]
    fn a_torn_tail_is_dropped_and_a_second_copy_counts_once() {
        let mut bytes = file(&[(0, 0, "a"), (1, 0, "b"), (1, 0, "b"), (2, 2, "c")]);
        assert_eq!(texts(&bytes).unwrap(), ["a", "b", "c"]);
        bytes.pop();
        assert_eq!(texts(&bytes).unwrap(), ["a", "b"]);
    }

    #[test]
    fn damage_before_a_record_that_knows_better_is_told_by_its_offset() {
        let mut bytes = file(&[(0, 0, "a"), (1, 0, "b"), (2, 2, "c")]);
        let second = HEAD + PREFIX + 1;
        bytes[second + PREFIX] ^= 1;
        assert_eq!(texts(&bytes), Err(second));
    }

    #[test]
    fn what_was_never_durable_may_be_missing_before_what_was_written_later() {
        let mut bytes = file(&[(0, 0, "a"), (1, 1, "b"), (2, 1, "c"), (2, 1, "c")]);
        let second = HEAD + PREFIX + 1;
        bytes[second..=second + PREFIX].fill(0);
        assert_eq!(texts(&bytes).unwrap(), ["a", "-", "c"]);
        let third = second + PREFIX + 1;
        bytes[third + 3] ^= 0x40;
        assert_eq!(texts(&bytes).unwrap(), ["a", "-", "c"], "its second copy is whole");
    }

    #[test]
    fn what_was_there_before_the_file_is_never_a_torn_tail() {
        let mut bytes = Head { records: 2, ..HERE }.encode().to_vec();
        for number in 0..2 {
            write(&mut bytes, HERE.seed(), number, 0, b"a");
        }
        assert_eq!(texts(&bytes).unwrap(), ["a", "a"]);
        let last = bytes.pop().unwrap();
        assert_eq!(texts(&bytes), Err(HEAD + PREFIX + 1));
        bytes.push(last ^ 1);
        assert_eq!(texts(&bytes), Err(HEAD + PREFIX + 1));
        bytes.truncate(HEAD + PREFIX + 1);
        assert_eq!(texts(&bytes), Err(HEAD + PREFIX + 1));
    }

    #[test]
    fn records_of_another_file_are_not_believed() {
        let mut bytes = file(&[(0, 0, "a")]);
        write(&mut bytes, Head { nonce: 8, ..HERE }.seed(), 1, 1, b"b");
        assert_eq!(texts(&bytes).unwrap(), ["a"]);
    }

    #[test]
    fn every_flipped_bit_of_the_head_is_noticed() {
        let good = HERE.encode();
        assert_eq!(Head::decode(&good), Ok(HERE));
        for bit in 0..HEAD * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::decode(&bad), Err(BadHead::Foreign), "bit {bit}");
        }
        assert_eq!(Head::decode(&good[..HEAD - 1]), Err(BadHead::Foreign));
    }

    #[test]
    fn other_versions_are_named() {
        let mut other = HERE.encode();
        other[8..12].copy_from_slice(&7_u32.to_le_bytes());
        let sum = sum_of_head(&other);
        other[12..16].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Head::decode(&other), Err(BadHead::Version(7)));
    }
}
