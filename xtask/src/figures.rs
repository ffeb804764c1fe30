use std::collections::BTreeMap;

/// The figures of the deep stages, by stage and name.
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<&'static str, Measured>);

/// The figures of one stage.
///
/// A stage says them in lines of its own, wherever they stand in its output; numbers of the same name are summed, of
/// words the last one counts:
///
/// ```text
/// figures: crash_images=1163847 flips=202432 seed_range=0..6582
/// ```
#[derive(Debug, Default)]
pub(crate) struct Measured {
    numbers: BTreeMap<String, f64>,
    words: BTreeMap<String, String>,
    is_failed: bool,
}

impl Measured {
    /// Takes the figures out of a line of the stage's output; any other line has none.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(pairs) = line.trim().strip_prefix("figures: ") else { return };
        for (name, value) in pairs.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            match value.parse::<f64>() {
                Ok(value) => *self.numbers.entry(name.to_owned()).or_default() += value,
                Err(_) => drop(self.words.insert(name.to_owned(), value.to_owned())),
            }
        }
    }

    /// The stage has failed, whatever it measured.
    pub(crate) fn fail(&mut self) {
        self.is_failed = true;
    }
}

impl Figures {
    pub(crate) fn insert(&mut self, stage: &'static str, measured: Measured) {
        self.0.insert(stage, measured);
    }

    /// True if the stage has failed.
    pub(crate) fn is_failed(&self, stage: &str) -> bool {
        self.0.get(stage).is_some_and(|measured| measured.is_failed)
    }

    /// The number that the stage said of `name`; `None` if it said none.
    pub(crate) fn number(&self, stage: &str, name: &str) -> Option<f64> {
        self.0.get(stage)?.numbers.get(name).copied()
    }

    /// The word that the stage said of `name`, such as a range of seeds.
    pub(crate) fn word(&self, stage: &str, name: &str) -> Option<&str> {
        self.0.get(stage)?.words.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_one_name_are_summed_and_other_lines_have_none() {
        let mut measured = Measured::default();
        for line in [
            "    figures: crash_images=7 flips=2",
            "figures: crash_images=3 seed_range=0..5",
            "crash_images=3",
            "figures crash_images=3",
            "figures: crash_images",
        ] {
            measured.read(line);
        }
        let mut figures = Figures::default();
        figures.insert("images", measured);
        assert_eq!(figures.number("images", "crash_images"), Some(10.0));
        assert_eq!(figures.number("images", "kills"), None);
        assert_eq!(figures.number("kills", "crash_images"), None);
        assert_eq!(figures.word("images", "seed_range"), Some("0..5"));
    }
}
