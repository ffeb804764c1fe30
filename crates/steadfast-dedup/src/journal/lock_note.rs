//! The note in a journal's lock, by which the next process notices a journal that is not the one written last.

use crc32fast::hash;

use super::frame::{Head, Salt};

const MAGIC: [u8; 8] = *b"stdfmark";
const LEN: usize = 77;

/// A lock's note about its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockNote {
    /// Nothing: there may never have been one.
    None,
    /// There was one, and the note is damaged.
    Unreadable,
    /// There was one with this salt.
    Written {
        salt: Salt,
        /// The files one of which must be there: two while the second replaces the first; none in notes of an older
        /// version.
        files: [Option<Reach>; 2],
    },
    /// The process that wrote it noticed that it was moved, removed or replaced.
    Displaced {
        salt: Salt,
        /// How far it had written the file by then; none in notes of an older version.
        file: Option<Reach>,
    },
}

/// How far one file of a journal was certainly written. It may have gone on since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Which file: each new file has another nonce.
    pub(super) nonce: u64,
    /// How many records were synced.
    pub(super) records: u64,
    /// Its length then, in bytes; never zero.
    pub(super) size: u64,
}

/// The verdict of a note on the journal beside its lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// Nothing speaks against it, provided that at least this was written to it.
    Believed(Option<Reach>),
    /// It is a different one, or there is none.
    Lost,
    /// It is an older file of the same journal, which this file replaced.
    Outdated(Reach),
}

impl LockNote {
    pub(super) const fn written(salt: Salt, file: Reach, successor: Option<Reach>) -> Self {
        Self::Written { salt, files: [Some(file), successor] }
    }

    // | 8 `stdfmark` | 16 salt | 1 whether it was displaced | 24 a file | 24 its successor | 4 checksum of the rest |
    // A file is its nonce, its number of records and its length; zeros if there is none. Older notes have no files.
    pub(super) fn encode(self) -> Vec<u8> {
        let (salt, displaced, files) = match self {
            Self::None | Self::Unreadable => return Vec::new(),
            Self::Written { salt, files } => (salt, 0, files),
            Self::Displaced { salt, file } => (salt, 1, [file, None]),
        };
        let mut note = Vec::with_capacity(LEN);
        note.extend_from_slice(&MAGIC);
        note.extend_from_slice(&salt);
        note.push(displaced);
        for file in files {
            let numbers = file.map_or([0; 3], |file| [file.nonce, file.records, file.size]);
            numbers.iter().for_each(|number| note.extend_from_slice(&number.to_le_bytes()));
        }
        let sum = hash(&note);
        note.extend_from_slice(&sum.to_le_bytes());
        note
    }

    pub(super) fn decode(note: &[u8]) -> Self {
        if note.is_empty() {
            return Self::None;
        }
        let Some((rest, sum)) = note.split_last_chunk::<4>() else { return Self::Unreadable };
        let Some((salt, [displaced, files @ ..])) =
            rest.strip_prefix(&MAGIC).and_then(|it| it.split_first_chunk())
        else {
            return Self::Unreadable;
        };
        let files = match files {
            [] => [None; 2],
            files => {
                let (numbers, []) = files.as_chunks::<8>() else { return Self::Unreadable };
                let &[a, b, c, d, e, f] = numbers else { return Self::Unreadable };
                [[a, b, c], [d, e, f]].map(|file| {
                    let [nonce, records, size] = file.map(u64::from_le_bytes);
                    (size > 0).then_some(Reach { nonce, records, size })
                })
            }
        };
        match (hash(rest).to_le_bytes() == *sum, displaced) {
            (true, 0) => Self::Written { salt: *salt, files },
            (true, 1) => Self::Displaced { salt: *salt, file: files[0] },
            _ => Self::Unreadable,
        }
    }

    /// Judges the journal with the head that was found.
    pub(super) fn judge(self, found: Option<Head>) -> Judged {
        match (self, found) {
            (Self::None, _) | (Self::Unreadable, Some(_)) => Judged::Believed(None),
            // Put back as its last writer left it: that one has told no caller of anything that it lacks.
            (Self::Displaced { salt, file: Some(file) }, Some(head))
                if (salt, file.nonce) == (head.salt, head.nonce) =>
            {
                Judged::Believed(Some(file))
            }
            (Self::Displaced { .. }, _) | (Self::Unreadable | Self::Written { .. }, None) => Judged::Lost,
            (Self::Written { salt, .. }, Some(head)) if salt != head.salt => Judged::Lost,
            (Self::Written { files, .. }, Some(head)) => {
                let mut files = files.into_iter().flatten();
                let Some(first) = files.next() else { return Judged::Believed(None) };
                let named = std::iter::once(first).chain(files).find(|file| file.nonce == head.nonce);
                named.map_or(Judged::Outdated(first), |file| Judged::Believed(Some(file)))
            }
        }
    }

    /// True if a successor was about to replace it, and the replacement may not survive a loss of power.
    pub(super) const fn is_between(self) -> bool {
        matches!(self, Self::Written { files: [_, Some(_)], .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: Salt = [7; 16];
    const FILE: Reach = Reach { nonce: 1, records: 0, size: 48 };
    const SUCCESSOR: Reach = Reach { nonce: 0, records: u64::MAX, size: 9_000 };

    fn older() -> Vec<u8> {
        let mut note = [&MAGIC[..], &SALT, &[0]].concat();
        note.extend(hash(&note).to_le_bytes());
        note
    }

    #[test]
    fn a_note_says_what_was_written_and_a_damaged_one_says_so() {
        let whole = LockNote::written(SALT, FILE, Some(SUCCESSOR));
        let displaced = [None, Some(FILE)].map(|file| LockNote::Displaced { salt: SALT, file });
        for mark in [LockNote::None, LockNote::written(SALT, FILE, None), whole, displaced[0], displaced[1]] {
            assert_eq!(LockNote::decode(&mark.encode()), mark);
        }
        assert_eq!(LockNote::decode(&older()), LockNote::Written { salt: SALT, files: [None; 2] });
        for (whole, length) in [(whole.encode(), LEN), (older(), 29)] {
            assert_eq!(whole.len(), length);
            for at in 0..length {
                let mut damaged = whole.clone();
                damaged[at] ^= 1;
                assert_eq!(LockNote::decode(&damaged), LockNote::Unreadable, "byte {at}");
                assert!(at == 0 || LockNote::decode(&whole[..at]) == LockNote::Unreadable, "{at} bytes");
            }
        }
    }

    #[test]
    fn only_the_journal_that_was_written_is_gone_on_with() {
        use Judged::{Believed, Lost, Outdated};
        let head = |salt, nonce| Some(Head { salt, nonce, records: 0 });
        let found = [head(SALT, 1), head(SALT, 0), head(SALT, 2), head([8; 16], 1), None];
        let old = LockNote::decode(&older());
        let any = Believed(None);
        for (mark, judged) in [
            (LockNote::None, [any; 5]),
            (LockNote::Unreadable, [any, any, any, any, Lost]),
            (old, [any, any, any, Lost, Lost]),
            (
                LockNote::written(SALT, FILE, None),
                [Believed(Some(FILE)), Outdated(FILE), Outdated(FILE), Lost, Lost],
            ),
            (
                LockNote::written(SALT, FILE, Some(SUCCESSOR)),
                [Believed(Some(FILE)), Believed(Some(SUCCESSOR)), Outdated(FILE), Lost, Lost],
            ),
            (LockNote::Displaced { salt: SALT, file: None }, [Lost; 5]),
            (
                LockNote::Displaced { salt: SALT, file: Some(FILE) },
                [Believed(Some(FILE)), Lost, Lost, Lost, Lost],
            ),
        ] {
            assert_eq!(found.map(|found| mark.judge(found)), judged, "{mark:?}");
        }
    }
}
