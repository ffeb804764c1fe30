use std::{error::Error, fmt, str::FromStr};

/// Digits and letters without `i`, `l`, `o` and `u`: folding case makes no two of them alike.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The letters begin here.
const LETTERS: u8 = 10;

const LEN: usize = 10;
const DRAWN: usize = 8;

/// A short text that marks an order, so that a record which shows it is certainly that order's.
///
/// Ten characters: a letter and seven letters or digits that are drawn, and two that check them. Case does not matter.
/// No text that differs from a tag in one or two characters is a tag.
///
/// # Example
///
/// ```
/// use steadfast_spec::{ShownTag, Tag};
///
/// let tag = Tag::from_draw(20_261_126);
/// let text = tag.to_string();
/// assert_eq!(text.to_uppercase().parse(), Ok(tag));
/// assert_eq!(ShownTag::read(&text[..7]).is_of(tag), true);
/// assert_eq!(ShownTag::read("my own remark"), ShownTag::Other);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag([u8; LEN]);

impl Tag {
    /// The length of a tag, in characters.
    pub const LEN: usize = LEN;

    /// How many characters of a tag are enough to recognise it by: [`ShownTag::Cut`] has at least as many.
    pub const SHORTEST: usize = 6;

    /// Returns the tag of a random number; its lower 40 bits decide.
    #[must_use]
    pub fn from_draw(draw: u64) -> Self {
        let mut digits = [0; LEN];
        let mut rest = draw;
        for digit in &mut digits[1..DRAWN] {
            *digit = (rest & 31) as u8;
            rest >>= 5;
        }
        digits[0] = LETTERS + ((rest & 31) as u8) % (32 - LETTERS);
        [digits[DRAWN], digits[DRAWN + 1]] = checks(&digits);
        Self(digits)
    }

    /// Returns its first characters, by which it is recognised where a service cuts it off.
    #[must_use]
    pub fn prefix(&self) -> [u8; Self::SHORTEST] {
        let mut prefix = [0; Self::SHORTEST];
        prefix.copy_from_slice(&self.0[..Self::SHORTEST]);
        prefix
    }
}

/// Returns the characters that check the drawn ones: the values of a polynomial over the field of 32 elements, at two
/// points. One or two wrong characters change at least one of them.
fn checks(digits: &[u8; LEN]) -> [u8; 2] {
    // Not zero, so that repeated characters are no tag.
    let (mut first, mut second) = (19, 7);
    for digit in &digits[..DRAWN] {
        first = shifted(first) ^ digit;
        second = shifted(shifted(second)) ^ digit;
    }
    [shifted(first), shifted(shifted(second))]
}

/// Multiplies by the generator of the field.
fn shifted(digit: u8) -> u8 {
    let carry = digit >> 4;
    ((digit << 1) ^ (carry * 0b10_1001)) & 31
}

fn digit(character: u8) -> Option<u8> {
    let at = ALPHABET.iter().position(|known| known.eq_ignore_ascii_case(&character))?;
    u8::try_from(at).ok()
}

impl FromStr for Tag {
    type Err = NoTag;

    fn from_str(text: &str) -> Result<Self, NoTag> {
        match ShownTag::read(text) {
            ShownTag::Whole(tag) => Ok(tag),
            ShownTag::Cut(_) | ShownTag::Other => Err(NoTag),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|digit| write!(f, "{}", char::from(ALPHABET[usize::from(digit & 31)])))
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no [`Tag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoTag;

impl fmt::Display for NoTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an order's tag")
    }
}

impl Error for NoTag {}

/// The text of a record in the field that carries an order's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShownTag {
    /// A complete tag whose check characters are right.
    Whole(Tag),
    /// Possibly the beginning of a tag, at least [`Tag::SHORTEST`] characters.
    Cut(CutTag),
    /// Any other text.
    Other,
}

/// The beginning of a tag, in case the text was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutTag {
    digits: [u8; LEN],
    len: usize,
}

impl ShownTag {
    /// Reads the text of a field. Surrounding space does not count.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.trim().as_bytes();
        if !(Tag::SHORTEST..=LEN).contains(&text.len()) {
            return Self::Other;
        }
        let mut digits = [0; LEN];
        for (place, character) in digits.iter_mut().zip(text) {
            let Some(found) = digit(*character) else { return Self::Other };
            *place = found;
        }
        if digits[0] < LETTERS {
            Self::Other
        } else if text.len() < LEN {
            Self::Cut(CutTag { digits, len: text.len() })
        } else if checks(&digits) == [digits[DRAWN], digits[DRAWN + 1]] {
            Self::Whole(Tag(digits))
        } else {
            Self::Other
        }
    }

    /// Returns the first characters, if it can be a tag.
    #[must_use]
    pub fn prefix(&self) -> Option<[u8; Tag::SHORTEST]> {
        match self {
            Self::Whole(tag) => Some(tag.prefix()),
            Self::Cut(cut) => Some(Tag(cut.digits).prefix()),
            Self::Other => None,
        }
    }

    /// True if it shows this tag, whole or cut off.
    #[must_use]
    pub fn is_of(&self, tag: Tag) -> bool {
        match self {
            Self::Whole(shown) => *shown == tag,
            Self::Cut(cut) => cut.digits[..cut.len] == tag.0[..cut.len],
            Self::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tag_is_no_number_and_begins_with_a_letter() {
        for draw in 0..2_000 {
            let text = Tag::from_draw(draw << 30 | draw).to_string();
            assert!(text.len() == 10 && text.starts_with(|first: char| first.is_ascii_lowercase()), "{text}");
            assert!(text.parse::<f64>().is_err(), "{text}");
        }
    }

    #[test]
    fn words_and_repeated_characters_are_no_tags() {
        for text in ["", "aaaaaaaaaa", "zzzzzzzzzz", "strangers", "1234567890", "remark 123", "a", "äääää"]
        {
            assert!(text.parse::<Tag>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_tag_survives_its_text_in_any_case(draw in any::<u64>(), upper in any::<[bool; 10]>()) {
            let tag = Tag::from_draw(draw);
            let text = tag.to_string();
            let mixed = text.chars().zip(upper);
            let mixed: String = mixed.map(|(c, up)| if up { c.to_ascii_uppercase() } else { c }).collect();
            prop_assert_eq!(mixed.parse(), Ok(tag));
            prop_assert_eq!(ShownTag::read(&format!(" {mixed} ")), ShownTag::Whole(tag));
        }

        #[test]
        fn one_or_two_wrong_characters_are_noticed(
            draw in any::<u64>(), places in (0_usize..10, 0_usize..10), changes in (1_u8..32, 0_u8..32),
        ) {
            let mut tag = Tag::from_draw(draw);
            tag.0[places.0] ^= changes.0;
            if places.0 != places.1 {
                tag.0[places.1] ^= changes.1;
            }
            prop_assert!(tag.to_string().parse::<Tag>().is_err());
        }

        #[test]
        fn exchanged_neighbours_are_noticed(draw in any::<u64>(), place in 0_usize..9) {
            let mut tag = Tag::from_draw(draw);
            if tag.0[place] != tag.0[place + 1] {
                tag.0.swap(place, place + 1);
                prop_assert!(tag.to_string().parse::<Tag>().is_err());
            }
        }

        #[test]
        fn a_cut_tag_is_recognised_from_six_characters_on(draw in any::<u64>(), other in any::<u64>(), len in 0_usize..10) {
            let (tag, other) = (Tag::from_draw(draw), Tag::from_draw(other));
            let cut = ShownTag::read(&tag.to_string()[..len]);
            prop_assert_eq!(cut.is_of(tag), len >= Tag::SHORTEST);
            prop_assert_eq!(cut == ShownTag::Other, len < Tag::SHORTEST);
            if tag.prefix() != other.prefix() {
                prop_assert!(!cut.is_of(other));
            }
        }

        #[test]
        fn different_draws_are_different_tags(a in 0_u64..1 << 35, b in 0_u64..1 << 35) {
            prop_assert_eq!(a == b, Tag::from_draw(a) == Tag::from_draw(b));
        }

        #[test]
        fn no_text_panics(text in ".{0,14}") {
            let _ = ShownTag::read(&text);
        }
    }
}
