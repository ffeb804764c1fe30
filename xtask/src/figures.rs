use std::collections::BTreeMap;

/// The figures of the deep stages, by the stage's key.
pub(crate) type Figures = BTreeMap<String, Measured>;

/// The figures of one stage.
///
/// A stage says them in lines of its own, wherever they stand in its output; those of the same name are summed:
///
/// ```text
/// figures: crash_images=1163847 flips=202432
/// ```
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) numbers: BTreeMap<String, f64>,
    /// The stage has failed, whatever it measured.
    pub(crate) is_failed: bool,
}

impl Measured {
    /// Takes the figures out of a line of the stage's output; any other line has none.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(pairs) = line.trim().strip_prefix("figures: ") else { return };
        for (name, value) in pairs.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            if let Ok(value) = value.parse::<f64>() {
                *self.numbers.entry(name.to_owned()).or_default() += value;
            }
        }
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
        assert_eq!(measured.numbers, [("crash_images".to_owned(), 10.0), ("flips".to_owned(), 2.0)].into());
    }
}
