use std::collections::BTreeMap;

/// What the deep stages measured, by stage and name.
///
/// A stage says it in lines of its own, wherever they stand in its output; numbers of the same name are summed, of
/// words the last one counts:
///
/// ```text
/// figures: crash_images=1163847 flips=202432 seed_range=0..6582
/// ```
#[derive(Debug, Default)]
pub(crate) struct Figures(BTreeMap<&'static str, BTreeMap<String, Figure>>);

/// The name of no figure: nothing can be said with a blank in it.
const FAILED: &str = "has failed";

#[derive(Debug)]
enum Figure {
    Number(f64),
    Word(String),
}

impl Figures {
    /// Takes the figures out of a line of the stage's output; any other line has none.
    pub(crate) fn read(&mut self, stage: &'static str, line: &str) {
        let Some(pairs) = line.trim().strip_prefix("figures: ") else { return };
        let stage = self.0.entry(stage).or_default();
        for (name, value) in pairs.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            let figure = value.parse().map_or_else(|_| Figure::Word(value.to_owned()), Figure::Number);
            match (stage.get_mut(name), figure) {
                (Some(Figure::Number(sum)), Figure::Number(value)) => *sum += value,
                (_, figure) => drop(stage.insert(name.to_owned(), figure)),
            }
        }
    }

    /// A stage has failed, whatever it measured.
    pub(crate) fn fail(&mut self, stage: &'static str) {
        self.0.entry(stage).or_default().insert(FAILED.to_owned(), Figure::Number(1.0));
    }

    /// True if the stage has failed.
    pub(crate) fn is_failed(&self, stage: &str) -> bool {
        self.get(stage, FAILED).is_some()
    }

    /// The number that the stage said of `name`; `None` if it said none.
    pub(crate) fn get(&self, stage: &str, name: &str) -> Option<f64> {
        match self.0.get(stage)?.get(name)? {
            Figure::Number(value) => Some(*value),
            Figure::Word(_) => None,
        }
    }

    /// What the stage said of `name` that is no number, such as a range of seeds.
    pub(crate) fn word(&self, stage: &str, name: &str) -> Option<&str> {
        match self.0.get(stage)?.get(name)? {
            Figure::Number(_) => None,
            Figure::Word(word) => Some(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_one_name_are_summed_within_their_stage() {
        let mut figures = Figures::default();
        figures.read("images", "    figures: crash_images=7 flips=2");
        figures.read("images", "figures: crash_images=3 seed_range=0..5");
        figures.read("kills", "figures: crash_images=100");
        assert_eq!(figures.get("images", "crash_images"), Some(10.0));
        assert_eq!(figures.get("images", "flips"), Some(2.0));
        assert_eq!(figures.get("images", "kills"), None);
        assert_eq!(figures.word("images", "seed_range"), Some("0..5"));
    }

    #[test]
    fn other_lines_have_no_figures() {
        let mut figures = Figures::default();
        for line in
            ["images=3", "figures crash_images=3", "figures: crash_images", "figures: crash_images=many"]
        {
            figures.read("images", line);
        }
        assert_eq!(figures.get("images", "crash_images"), None);
    }
}
