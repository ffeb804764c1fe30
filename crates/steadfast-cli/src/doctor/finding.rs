use std::fmt;

use serde::Serialize;

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    subject: &'static str,
    state: State,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Fine,
    Doubtful,
    Unchecked,
    Bad,
}

/// All findings, in the order of the checks.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn fine(&mut self, subject: &'static str, detail: impl fmt::Display) {
        self.add(subject, State::Fine, detail);
    }

    pub(super) fn doubtful(&mut self, subject: &'static str, detail: impl fmt::Display) {
        self.add(subject, State::Doubtful, detail);
    }

    pub(super) fn bad(&mut self, subject: &'static str, detail: impl fmt::Display) {
        self.add(subject, State::Bad, detail);
    }

    /// Adds what could not be checked, and that fails the whole examination: nothing is known to be wrong, and the one
    /// thing that counts was not tried.
    pub(super) fn unchecked(&mut self, subject: &'static str, detail: impl fmt::Display) {
        self.add(subject, State::Unchecked, detail);
    }

    pub(super) fn any_unchecked(&self) -> bool {
        self.0.iter().any(|finding| finding.state == State::Unchecked)
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.0
    }

    pub(super) fn any_bad(&self) -> bool {
        self.0.iter().any(|finding| finding.state == State::Bad)
    }

    fn add(&mut self, subject: &'static str, state: State, detail: impl fmt::Display) {
        self.0.push(Finding { subject, state, detail: detail.to_string() });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Fine => "fine",
            State::Doubtful => "doubtful",
            State::Unchecked => "unchecked",
            State::Bad => "bad",
        };
        write!(f, "{state:<9} {:<9} {}", self.subject, self.detail)
    }
}
