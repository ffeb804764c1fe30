use std::fmt;

/// A place where the repository breaks one of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: String,
    what: String,
}

impl Finding {
    pub(crate) fn new(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self { place: place.to_string(), what: what.to_string() }
    }

    /// A finding at a line, counted from 1.
    pub(super) fn at(file: &str, line: usize, what: impl fmt::Display) -> Self {
        Self::new(format_args!("{file}:{line}"), what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Renders findings so that a test reads like what a person sees.
#[cfg(test)]
pub(super) fn shown(findings: Vec<Finding>) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}
