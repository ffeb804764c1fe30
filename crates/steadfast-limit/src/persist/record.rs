use std::fmt::Write;

use crate::{
    core::{key_record::KeyRecord, limiter::Limiter, start::Assumed, time::Nanos},
    persist::journal_clocks::Written,
    request::keys::Seed,
};

/// A journal: what had been spent at one instant of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) seed: Seed,
    pub(crate) written: Written,
    /// True if the limiter had ended and nothing was sent afterwards.
    pub(crate) closed: bool,
    pub(crate) content: Content,
}

/// A limiter's knowledge of spent slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The assumptions of this start and of earlier ones about keys that are not listed, and how long before the record. Without
    /// it, the next process would take a key that this one has not used for unused.
    pub(crate) starts: Vec<(Assumed, Nanos)>,
    pub(crate) keys: Vec<Entry>,
}

/// One key of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) zone: String,
    pub(crate) key: u64,
    pub(crate) closed_for: Nanos,
    /// Nanoseconds relative to the record, ascending. Rounded up to microseconds when read back.
    pub(crate) stamps: Vec<i64>,
}

/// Ends with the flag byte: `+` means that no later record is missing.
const VERSION: &str = "steadfast-limit 2 +";
const MICRO: i64 = 1_000;

impl Record {
    /// The position of the flag byte.
    pub(crate) const FLAG_AT: u64 = VERSION.len() as u64 - 1;

    /// The flag byte if a later record could not be written.
    pub(crate) const STALE: u8 = b'-';

    /// True if the record is marked as out of date.
    pub(crate) fn is_stale(bytes: &[u8]) -> bool {
        let name = &VERSION.as_bytes()[..VERSION.len() - 1];
        bytes.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&Self::STALE))
    }

    /// Encodes as plain text: one line per start and per key, and a last line with a checksum.
    pub(crate) fn encode(&self) -> String {
        let state = if self.closed { "closed" } else { "open" };
        let [a, b] = self.seed.0;
        let mut text = format!(
            "{VERSION}\nseed {a:016x} {b:016x} {:016x}\n{state} {}",
            self.seed.check(),
            self.written.wall
        );
        if let Some((id, since)) = self.written.boot {
            // Writing to a string cannot fail.
            let _ = write!(text, " {id:016x} {since}");
        }
        text.push('\n');
        for (spent, before) in &self.content.starts {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {}", word(*spent), before / MICRO as u64);
        }
        for entry in &self.content.keys {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:016x} {} ", entry.key, entry.closed_for.div_ceil(MICRO as u64));
            let mut before = 0;
            for stamp in &entry.stamps {
                let stamp = stamp.div_euclid(MICRO) + i64::from(stamp.rem_euclid(MICRO) > 0);
                let _ = write!(text, "{},", stamp - before);
                before = stamp;
            }
            let _ = writeln!(text, " {}", entry.zone.escape_default());
        }
        let sum = checksum(&text);
        let _ = writeln!(text, "end {sum:016x}");
        text
    }

    /// Decodes what [`encode`](Self::encode) wrote, and nothing else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let body = text.strip_suffix('\n')?;
        let (body, end) = body.split_at(body.rfind('\n')? + 1);
        if hex(end.strip_prefix("end ")?)? != checksum(body) {
            return None;
        }
        let mut lines = body.strip_prefix(VERSION)?.strip_prefix('\n')?.lines();
        let mut words = lines.next()?.strip_prefix("seed ")?.split(' ').map(hex);
        let seed = Seed([words.next()??, words.next()??]);
        if words.next()?? != seed.check() || words.next().is_some() {
            return None;
        }
        let mut words = lines.next()?.split(' ');
        let closed = match words.next()? {
            "closed" => true,
            "open" => false,
            _ => return None,
        };
        let wall = words.next()?.parse().ok()?;
        let boot = match words.next() {
            Some(id) => Some((hex(id)?, words.next()?.parse().ok()?)),
            None => None,
        };
        if words.next().is_some() {
            return None;
        }
        let written = Written { wall, boot };
        let (mut starts, mut lines) = (Vec::new(), lines.peekable());
        while let Some(start) =
            lines.next_if(|line| STARTS.iter().any(|spent| line.starts_with(word(*spent))))
        {
            starts.push(decode_start(start)?);
        }
        let keys = lines.map(Entry::decode).collect::<Option<_>>()?;
        Some(Self { seed, written, closed, content: Content { starts, keys } })
    }
}

const STARTS: [Assumed; 2] = [Assumed::Unrecorded, Assumed::All];

/// Returns the word for `spent`. No line of a key begins with it: these begin with 16 digits.
fn word(spent: Assumed) -> &'static str {
    match spent {
        Assumed::Unrecorded => "unrecorded",
        Assumed::All => "spent",
    }
}

fn decode_start(line: &str) -> Option<(Assumed, Nanos)> {
    let (first, before) = line.split_once(' ')?;
    let spent = STARTS.into_iter().find(|spent| word(*spent) == first)?;
    Some((spent, before.parse::<u64>().ok()?.checked_mul(MICRO as u64)?))
}

impl Content {
    /// Returns what `core` knows at `now`.
    pub(crate) fn of(core: &mut Limiter, now: Nanos) -> Self {
        Self { starts: core.assumed(now), keys: Entry::all_of(core, now) }
    }
}

impl Entry {
    /// Returns what every key of `core` has spent at `now`.
    fn all_of(core: &mut Limiter, now: Nanos) -> Vec<Self> {
        let zones: Vec<_> = core.zones().map(|(zone, _)| zone).collect();
        let entry = |kept: KeyRecord| Self {
            zone: zones[usize::from(kept.zone.0)].as_str().to_owned(),
            key: kept.key,
            closed_for: kept.closed_for,
            stamps: kept.stamps,
        };
        core.export_all(now).into_iter().map(entry).collect()
    }

    fn decode(line: &str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let key = hex(words.next()?)?;
        let closed_for = words.next()?.parse::<u64>().ok()?.checked_mul(MICRO as u64)?;
        let mut stamps = Vec::new();
        let mut before = 0_i64;
        for step in words.next()?.split_terminator(',') {
            let step: i64 = step.parse().ok()?;
            if step < 0 && !stamps.is_empty() {
                return None;
            }
            before = before.checked_add(step)?;
            stamps.push(before.checked_mul(MICRO)?);
        }
        Some(Self { key, closed_for, stamps, zone: words.next()?.to_owned() })
    }

    /// True if it belongs to `zone`.
    pub(crate) fn is_of(&self, zone: &str) -> bool {
        zone.escape_default().eq(self.zone.chars())
    }
}

/// Parses exactly 16 digits, without a sign or spaces.
fn hex(word: &str) -> Option<u64> {
    let plain = word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(word, 16).ok()).flatten()
}

/// FNV-1a. It detects damage by a disk or an editor. Forgery is no concern: the file is the user's own.
fn checksum(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(zone: &str, stamps: &[i64]) -> Entry {
        Entry { zone: zone.to_owned(), key: 7, closed_for: 3_000, stamps: stamps.to_vec() }
    }

    fn record(keys: Vec<Entry>) -> Record {
        let written = Written { wall: 1_790_000_000_000_000_000, boot: Some((u64::MAX, 5)) };
        let content = Content { starts: vec![(Assumed::All, 7_000), (Assumed::Unrecorded, 0)], keys };
        Record { seed: Seed([1, u64::MAX]), written, closed: false, content }
    }

    #[test]
    fn what_was_written_is_read_and_stamps_are_rounded_up() {
        let written = record(vec![
            entry("general", &[-61_000_000_000, -1, 0, 1, 30_000_000_001]),
            entry("my zone", &[]),
        ]);
        let mut read = Record::decode(&written.encode()).unwrap();
        assert_eq!(read.content.keys[0].stamps, [-61_000_000_000, 0, 0, 1_000, 30_000_001_000]);
        assert!(read.content.keys[1].is_of("my zone"));
        assert_eq!((read.content.keys[1].key, read.content.keys[1].closed_for), (7, 3_000));
        read.content.keys.clear();
        assert_eq!(read, record(Vec::new()));
    }

    #[test]
    fn a_zone_may_have_any_name() {
        for zone in ["a\nb", "", "end 0", "näher", "\\n"] {
            let read = Record::decode(&record(vec![entry(zone, &[1])]).encode()).unwrap();
            assert!(read.content.keys[0].is_of(zone), "{zone:?}");
            assert!(!read.content.keys[0].is_of("other"), "{zone:?}");
        }
    }

    #[test]
    fn l01_a_machine_without_a_clock_of_its_own_writes_the_wall_clock_alone() {
        let mut plain = record(Vec::new());
        plain.written.boot = None;
        assert_eq!(Record::decode(&plain.encode()), Some(plain));
    }

    #[test]
    fn l02_one_byte_makes_a_record_stale_and_no_other_does() {
        let whole = record(vec![entry("general", &[-5_000])]).encode();
        assert!(!Record::is_stale(whole.as_bytes()));
        for at in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] = Record::STALE;
            assert_eq!(Record::is_stale(&bytes), at as u64 == Record::FLAG_AT, "byte {at}");
        }
    }

    #[test]
    fn any_cut_and_any_changed_byte_is_found() {
        let whole = record(vec![entry("general", &[-5_000, -2_000])]).encode();
        for end in 0..whole.len() {
            assert!(Record::decode(&whole[..end]).is_none(), "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] ^= 1;
            let read = String::from_utf8(bytes).ok().and_then(|text| Record::decode(&text));
            // A checksum digit in upper case has the same value.
            assert!(read.is_none_or(|read| read == Record::decode(&whole).unwrap()), "byte {at}");
        }
        assert!(Record::decode(&format!("{whole}{whole}")).is_none());
        assert!(Record::decode("").is_none());
    }

    #[test]
    fn another_way_of_hashing_is_found() {
        let whole = record(Vec::new()).encode();
        let seed = format!("{:016x}", Seed([1, u64::MAX]).check());
        let other = whole.replace(&seed, &format!("{:016x}", 12));
        let (body, _) = other.split_at(other.rfind("end").unwrap());
        assert!(Record::decode(&format!("{body}end {:016x}\n", checksum(body))).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            prop_assert!(Record::decode(&text).is_none());
        }

        #[test]
        fn any_stamps_survive_and_never_become_earlier(mut stamps in proptest::collection::vec(-200_000_000_000..200_000_000_000_i64, 0..50)) {
            stamps.sort_unstable();
            let read = Record::decode(&record(vec![entry("z", &stamps)]).encode()).unwrap();
            for (read, stamp) in read.content.keys[0].stamps.iter().zip(&stamps) {
                prop_assert!((0..1_000).contains(&(read - stamp)));
            }
            prop_assert_eq!(read.content.keys[0].stamps.len(), stamps.len());
        }
    }
}
