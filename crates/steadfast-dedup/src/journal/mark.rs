//! What the lock says of the journal beside it, so that the next process knows when it is not the one that was written.

use crc32fast::hash;

use super::frame::Salt;

const MAGIC: [u8; 8] = *b"stdfmark";
const LEN: usize = 29;

/// What is known of the journal that a lock belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: there may never have been one.
    None,
    /// There was one, and the note is damaged.
    Unreadable,
    /// There was one with this salt.
    Written(Salt),
    /// The process that wrote it noticed that it was moved, removed or replaced.
    Displaced(Salt),
}

impl Mark {
    // | 8 `stdfmark` | 16 salt | 1 whether it was displaced | 4 checksum of the rest |
    pub(super) fn encode(self) -> Vec<u8> {
        let (salt, displaced) = match self {
            Self::None | Self::Unreadable => return Vec::new(),
            Self::Written(salt) => (salt, 0),
            Self::Displaced(salt) => (salt, 1),
        };
        let mut note = Vec::with_capacity(LEN);
        note.extend_from_slice(&MAGIC);
        note.extend_from_slice(&salt);
        note.push(displaced);
        let sum = hash(&note);
        note.extend_from_slice(&sum.to_le_bytes());
        note
    }

    pub(super) fn decode(note: &[u8]) -> Self {
        if note.is_empty() {
            return Self::None;
        }
        let Some((rest, sum)) = note.split_last_chunk::<4>() else { return Self::Unreadable };
        let Some((salt, &[displaced])) = rest.strip_prefix(&MAGIC).and_then(|it| it.split_first_chunk())
        else {
            return Self::Unreadable;
        };
        match (hash(rest).to_le_bytes() == *sum, displaced) {
            (true, 0) => Self::Written(*salt),
            (true, 1) => Self::Displaced(*salt),
            _ => Self::Unreadable,
        }
    }

    /// True if the next process must not take this for what was written last.
    pub(super) fn disowns(self, found: Option<Salt>) -> bool {
        match (self, found) {
            (Self::None, _) | (Self::Unreadable, Some(_)) => false,
            (Self::Displaced(_), _) | (Self::Unreadable, None) => true,
            (Self::Written(salt), found) => found != Some(salt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_was_written_and_a_damaged_one_says_so() {
        let salt = [7; 16];
        for mark in [Mark::None, Mark::Written(salt), Mark::Displaced(salt)] {
            assert_eq!(Mark::decode(&mark.encode()), mark);
        }
        let whole = Mark::Written(salt).encode();
        assert_eq!(whole.len(), LEN);
        for at in 0..LEN {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(Mark::decode(&damaged), Mark::Unreadable, "byte {at}");
            assert!(at == 0 || Mark::decode(&whole[..at]) == Mark::Unreadable, "{at} bytes");
        }
    }

    #[test]
    fn only_the_journal_that_was_written_is_gone_on_with() {
        let (salt, other) = ([7; 16], [8; 16]);
        for (mark, mine, others, none) in [
            (Mark::None, false, false, false),
            (Mark::Unreadable, false, false, true),
            (Mark::Written(salt), false, true, true),
            (Mark::Displaced(salt), true, true, true),
        ] {
            let disowned = [Some(salt), Some(other), None].map(|found| mark.disowns(found));
            assert_eq!(disowned, [mine, others, none], "{mark:?}");
        }
    }
}
