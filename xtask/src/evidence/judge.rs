use crate::deep::Figures;

/// What a row came to.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) value: String,
    /// `None` if the row does not apply yet.
    pub(crate) pass: Option<bool>,
    /// Why the row does not apply yet.
    pub(crate) na: Option<String>,
}

impl Judgement {
    /// A judgement by one condition.
    pub(super) fn by(holds: bool, value: String) -> Self {
        Self { value, pass: Some(holds), ..Self::default() }
    }

    /// A row whose stages said nothing has failed.
    pub(super) fn unmeasured(what: &str) -> Self {
        Self::by(false, format!("not measured: {what}"))
    }

    /// No figure holds that comes from a stage in which something failed.
    pub(super) fn unless_failed(mut self, stages: &[&str], figures: &Figures) -> Self {
        for stage in stages.iter().filter(|stage| figures.is_failed(stage)) {
            self.pass = Some(false);
            self.value += &format!("; stage `{stage}` failed");
        }
        self
    }
}

/// The figures of some stages, summed; the first that is missing is remembered.
pub(super) struct Sums<'a> {
    figures: &'a Figures,
    missing: Option<String>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(figures: &'a Figures) -> Self {
        Self { figures, missing: None }
    }

    /// The sum of `name` over all `stages`, each of which has to say it.
    pub(super) fn of(&mut self, stages: &[&str], name: &str) -> f64 {
        stages.iter().map(|stage| self.one(stage, name)).sum()
    }

    pub(super) fn one(&mut self, stage: &str, name: &str) -> f64 {
        self.figures.get(stage, name).unwrap_or_else(|| {
            self.missing.get_or_insert_with(|| format!("`{name}` of stage `{stage}`"));
            0.0
        })
    }

    /// The judgement, unless a figure is missing.
    pub(super) fn judge(self, holds: bool, value: String) -> Judgement {
        match self.missing {
            Some(what) => Judgement::unmeasured(&what),
            None => Judgement::by(holds, value),
        }
    }
}

/// A count with its thousands apart: `1,163,847`.
pub(super) fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let texts: Vec<String> = [0.0, 12.0, 999.0, 1_000.0, 1_163_847.0].map(count).to_vec();
        assert_eq!(texts, ["0", "12", "999", "1,000", "1,163,847"]);
    }

    #[test]
    fn a_row_does_not_hold_if_one_of_its_stages_failed() {
        let mut figures = Figures::default();
        figures.read("images", "figures: crash_images=5");
        figures.fail("kills");
        let judged = |stages: &[&str]| Judgement::by(true, "fine".to_owned()).unless_failed(stages, &figures);
        assert_eq!(judged(&["images"]).pass, Some(true));
        let failed = judged(&["images", "kills"]);
        assert_eq!((failed.pass, failed.value.as_str()), (Some(false), "fine; stage `kills` failed"));
    }

    #[test]
    fn a_missing_figure_fails_and_is_named() {
        let mut figures = Figures::default();
        figures.read("images", "figures: crash_images=5");
        let mut sums = Sums::new(&figures);
        assert_eq!(sums.one("images", "crash_images"), 5.0);
        sums.of(&["images", "kills"], "killed");
        let judgement = sums.judge(true, "fine".to_owned());
        assert_eq!(judgement.pass, Some(false));
        assert_eq!(judgement.value, "not measured: `killed` of stage `images`");
    }
}
