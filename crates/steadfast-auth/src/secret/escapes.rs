//! The escapes in which a text may spell a character, and escapes within escapes: a JSON text in an address, quoted in JSON.

/// A text whose characters may be escaped: `%3D` in an address, `\u003d`, `\x3d` and `\/` in JSON and code, `&#61;`, `&#x3d;`
/// and `&equals;` on a page.
pub(super) struct Escapes<'t> {
    text: &'t [u8],
    is_cut: bool,
}

/// A character of a text, and where it ends. Each byte of a text, and of an address, is a character.
type Reading = (char, usize);

/// The meaning of an escape, as far as it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Nothing,
    Unfinished,
    Character(char),
}

/// The names that HTML has for its own signs, and for those that occur in keys and tokens.
const NAMED: [(&[u8], char); 11] = [
    (b"amp", '&'),
    (b"apos", '\''),
    (b"colon", ':'),
    (b"equals", '='),
    (b"gt", '>'),
    (b"lowbar", '_'),
    (b"lt", '<'),
    (b"period", '.'),
    (b"plus", '+'),
    (b"quot", '"'),
    (b"sol", '/'),
];

/// The longest text between `&` and `;`: seven digits are enough for each character, with a zero or two before it.
const LONGEST: usize = b"#x000003d".len();

impl<'t> Escapes<'t> {
    /// No escape of any kind begins with another byte.
    pub(super) const LEADS: [u8; 3] = [b'%', b'\\', b'&'];

    pub(super) fn of(text: &'t [u8]) -> Self {
        Self { text, is_cut: false }
    }

    /// True if the text ended where more of a character was looked for.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// True if a spelling of one of these characters may begin with a lead and this byte.
    pub(super) fn may_begin(lead: u8, second: u8, characters: &[char]) -> bool {
        Self::LEADS.contains(&second)
            || match meaning(&[lead, second]) {
                Meaning::Nothing => false,
                Meaning::Unfinished => true,
                Meaning::Character(character) => characters.contains(&character),
            }
    }

    /// Returns each character that the text may spell at a place: first the byte itself, then what an escape there stands for.
    /// The characters of an escape may be escaped in turn, `depth` levels in all.
    pub(super) fn read(&mut self, at: usize, depth: usize) -> impl Iterator<Item = Reading> + use<> {
        let byte = self.text.get(at).copied();
        self.is_cut |= byte.is_none();
        let is_lead = byte.is_some_and(|byte| Self::LEADS.contains(&byte));
        let escaped = if is_lead && depth > 0 { self.escaped(at, depth - 1) } else { Vec::new() };
        byte.map(|byte| (byte.into(), at + 1)).into_iter().chain(escaped)
    }

    /// Returns what the escapes at a place stand for, whose characters may be escaped `depth` levels deep.
    fn escaped(&mut self, at: usize, depth: usize) -> Vec<Reading> {
        // The characters of an escape so far, which are fewer than fit as long as it is unfinished.
        let (mut readings, mut open) = (Vec::new(), vec![([0; LONGEST + 2], 0, at)]);
        while let Some((mut escape, length, at)) = open.pop() {
            for (character, at) in self.read(at, depth) {
                let Ok(byte) = u8::try_from(character) else { continue };
                escape[length] = byte;
                match meaning(&escape[..=length]) {
                    Meaning::Nothing => {}
                    Meaning::Unfinished => open.push((escape, length + 1, at)),
                    Meaning::Character(character) => readings.push((character, at)),
                }
            }
        }
        readings.sort_unstable();
        readings.dedup();
        readings
    }
}

/// Returns what an escape says so far.
fn meaning(escape: &[u8]) -> Meaning {
    match escape {
        [b'%', digits @ ..] | [b'\\', b'x' | b'X', digits @ ..] => hex(digits, 2),
        [b'\\', b'u' | b'U', digits @ ..] => hex(digits, 4),
        // The other letters stand for blanks and the like.
        [b'\\', sign @ (b'"' | b'\\' | b'/' | b'\'')] => Meaning::Character(char::from(*sign)),
        [b'&', text @ ..] => reference(text),
        [b'\\'] => Meaning::Unfinished,
        _ => Meaning::Nothing,
    }
}

fn hex(digits: &[u8], length: usize) -> Meaning {
    match number(digits, 16) {
        Some(value) if digits.len() == length => character(value),
        Some(_) => Meaning::Unfinished,
        None => Meaning::Nothing,
    }
}

/// Returns what a page says with this text after `&`.
fn reference(text: &[u8]) -> Meaning {
    let whole = text.strip_suffix(b";");
    let value = match whole.unwrap_or(text) {
        text if text.len() > LONGEST => None,
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        text => {
            let is_it = |name: &[u8]| name == text || whole.is_none() && name.starts_with(text);
            NAMED.iter().find(|(name, _)| is_it(name)).map(|&(_, sign)| sign.into())
        }
    };
    match value {
        None => Meaning::Nothing,
        Some(_) if whole.is_none() => Meaning::Unfinished,
        Some(value) => character(value),
    }
}

/// Returns the value of digits, of which there are too few for an overflow.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    digits.iter().try_fold(0, |value, &digit| Some(value * radix + char::from(digit).to_digit(radix)?))
}

/// Half of a pair of surrogates is no character, and in no secret.
fn character(value: u32) -> Meaning {
    Meaning::Character(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
}
