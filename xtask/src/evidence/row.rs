use anyhow::Result;

use super::Judgement;
use crate::deep::Figures;
use crate::metadata::Workspace;

/// One figure of the evidence.
pub(crate) struct Row {
    /// F1 to F18.
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    pub(crate) target: &'static str,
    /// What a long run aims at; empty if one would show no more.
    pub(crate) aim: &'static str,
    /// The deep stages that measure it; none if the repository's files tell.
    pub(crate) stages: &'static [&'static str],
    pub(crate) judge: By,
}

/// What a row is judged by.
pub(crate) enum By {
    Figures(fn(&Figures) -> Judgement),
    Files(fn(&Workspace) -> Result<Judgement>),
}

impl Row {
    /// # Errors
    ///
    /// The repository cannot be read.
    pub(super) fn judge(&self, workspace: &Workspace, figures: &Figures) -> Result<Judgement> {
        match self.judge {
            By::Figures(judge) => Ok(judge(figures)),
            By::Files(judge) => judge(workspace),
        }
    }

    /// What measures it again.
    pub(super) fn command(&self) -> String {
        format!("cargo xtask evidence --only {}", self.id)
    }
}
