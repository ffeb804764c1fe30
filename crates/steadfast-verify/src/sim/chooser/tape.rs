use std::{collections::BTreeMap, error::Error, fmt, str::FromStr};

use crate::sim::chooser::Site;

/// The choices of one run other than the plain ones.
///
/// As text, one choice a line: `<what> <of> <nth> = <choice>`; `#` begins a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    choices: BTreeMap<Site, u32>,
}

impl Tape {
    /// Returns the choice at `site`; 0 if it is not on the tape.
    #[must_use]
    pub fn get(&self, site: Site) -> u32 {
        self.choices.get(&site).copied().unwrap_or_default()
    }

    /// Returns the tape with another choice at `site`.
    #[must_use]
    pub fn with(&self, site: Site, choice: u32) -> Self {
        self.iter().filter(|(other, _)| *other != site).chain([(site, choice)]).collect()
    }

    /// Returns every choice, ordered by thing.
    pub fn iter(&self) -> impl Iterator<Item = (Site, u32)> {
        self.choices.iter().map(|(&site, &choice)| (site, choice))
    }

    /// Returns the number of choices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.choices.len()
    }

    /// True if every choice is the plain one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.choices.is_empty()
    }
}

impl FromIterator<(Site, u32)> for Tape {
    fn from_iter<I: IntoIterator<Item = (Site, u32)>>(choices: I) -> Self {
        Self { choices: choices.into_iter().filter(|(_, choice)| *choice > 0).collect() }
    }
}

impl fmt::Display for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(site, choice)| writeln!(f, "{site} = {choice}"))
    }
}

impl FromStr for Tape {
    type Err = UnreadableTape;

    fn from_str(text: &str) -> Result<Self, UnreadableTape> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let choices = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        choices.map(|(number, line)| choice(line).ok_or(UnreadableTape { line: number })).collect()
    }
}

fn choice(line: &str) -> Option<(Site, u32)> {
    let (site, choice) = line.split_once('=')?;
    let mut words = site.split_whitespace();
    let (what, of, nth) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then(|| Some((Site::named(what, of, nth), choice.trim().parse().ok()?)))?
}

/// A tape line that is not a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadableTape {
    line: usize,
}

impl fmt::Display for UnreadableTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tape line {} is not \"<what> <of> <nth> = <choice>\"", self.line)
    }
}

impl Error for UnreadableTape {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_is_read_back_from_its_text() {
        let tape: Tape =
            [(Site::new("place.fault").of(17).nth(2), 4), (Site::new("callers"), 49)].into_iter().collect();
        let text = format!("# seed 7\n{tape}");
        assert!(text.contains("place.fault 17 2 = 4\n"), "{text}");
        assert_eq!(text.parse(), Ok(tape));
    }

    #[test]
    fn a_line_that_is_no_choice_is_named() {
        for line in ["x", "x 1 = 2", "x 1 2 3 = 4", "x 1 2 = -1"] {
            let error = format!("# comment\n\n{line}").parse::<Tape>().unwrap_err();
            assert_eq!(error, UnreadableTape { line: 3 }, "{line}");
        }
    }
}
