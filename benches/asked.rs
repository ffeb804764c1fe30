//! The arguments of a bench, and the output of its figures.

/// The task given by a bench's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All figures, for people. Without cargo's `--bench`, cargo only checks that the program runs.
    Table { whole: bool },
    /// The figures about this subject, one a line: case, contender, value and unit, separated by tabs. `ours` omits
    /// the peers where counting them takes long.
    Lines { subject: String, ours: bool },
    /// One case of one contender and nothing else, for a simulator that counts instructions.
    Once { subject: String, case: String, who: String },
}

impl Asked {
    pub(crate) fn of_us() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        match &words[..] {
            [flag, subject] if flag == "--lines" => Self::Lines { subject: subject.clone(), ours: false },
            [flag, subject] if flag == "--ours" => Self::Lines { subject: subject.clone(), ours: true },
            [flag, subject, case, who] if flag == "--once" => {
                Self::Once { subject: subject.clone(), case: case.clone(), who: who.clone() }
            }
            words => Self::Table { whole: words.iter().any(|word| word == "--bench") },
        }
    }

    /// True if figures about `subject` are wanted.
    pub(crate) fn is_about(&self, subject: &str) -> bool {
        match self {
            Self::Table { .. } => true,
            Self::Lines { subject: wanted, .. } | Self::Once { subject: wanted, .. } => wanted == subject,
        }
    }

    /// Prints one figure.
    #[expect(clippy::print_stdout, reason = "a bench prints its figures")]
    pub(crate) fn tell(&self, case: &str, who: &str, value: f64, unit: &str) {
        if matches!(self, Self::Lines { .. }) {
            println!("{case}\t{who}\t{value}\t{unit}");
        } else {
            println!("{case:36} {who:32} {value:12.2} {unit}");
        }
    }
}
