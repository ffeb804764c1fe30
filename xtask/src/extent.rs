use serde::Deserialize;

/// Whether stages run all that they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Extent {
    /// A part of the longest ones, as CI has time for.
    Sample,
    Full,
}
