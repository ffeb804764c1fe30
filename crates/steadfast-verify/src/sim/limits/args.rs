use std::{num::NonZeroU64, path::PathBuf, thread, time::Duration};

use super::{
    campaign::{Campaign, Until},
    matrix,
    row::Row,
};
use crate::sim::{axes::Axes, network::S};

/// The command line of `sim limits`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// Everything is drawn from this number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Plays so many rounds: the same figures on every machine.
    #[arg(long, value_name = "N", conflicts_with_all = ["minutes", "seconds", "sends"])]
    pub rounds: Option<NonZeroU64>,
    /// Plays for so many minutes of real time.
    #[arg(long, value_name = "M", conflicts_with = "seconds")]
    pub minutes: Option<NonZeroU64>,
    /// Plays for so many seconds of real time.
    #[arg(long, value_name = "S")]
    pub seconds: Option<NonZeroU64>,
    /// Plays until so many requests have left in rows that promise no 429 [default: 10000000, or three minutes].
    #[arg(long, value_name = "N")]
    pub sends: Option<NonZeroU64>,
    /// Plays one round of short sessions, in seconds.
    #[arg(long)]
    pub quick: bool,
    /// Plays only the rows whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Adds behaviours of gateways: `quotas`, `all` or `none`.
    #[arg(long, value_name = "NAMES", default_value_t = Axes::DEFAULT)]
    pub axes: Axes,
    /// Writes plots of the figures into this folder.
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Plays on so many threads [default: one for each core].
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU64>,
}

impl Args {
    const SENDS: u64 = 10_000_000;
    const DEFAULT_LIMIT: Duration = Duration::from_secs(180);
    const NO_LIMIT: Duration = Duration::from_secs(86_400);

    /// Returns the requested campaign.
    pub(super) fn campaign(&self) -> Campaign {
        let chosen = |row: &Row| self.only.as_ref().is_none_or(|text| row.to_string().contains(text));
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        Campaign {
            rows: matrix::rows_with(self.axes).into_iter().filter(chosen).collect(),
            seed: self.seed,
            session: if self.quick { 180 * S } else { 600 * S },
            until: self.until(),
            threads: self.threads.map_or_else(cores, |threads| threads.get() as usize),
        }
    }

    fn until(&self) -> Until {
        let seconds = self.seconds.or(self.minutes.map(|minutes| minutes.saturating_mul(SIXTY)));
        let time = seconds.map(|seconds| Duration::from_secs(seconds.get()));
        match (self.rounds, self.sends, time) {
            (Some(rounds), ..) => Until::Rounds(rounds.get()),
            (_, Some(sends), limit) => Until::Sends(sends.get(), limit.unwrap_or(Self::NO_LIMIT)),
            (_, None, Some(limit)) => Until::Time(limit),
            // A filtered matrix would need very long to send ten million.
            (_, None, None) if self.quick || self.only.is_some() => Until::Rounds(1),
            (_, None, None) => Until::Sends(Self::SENDS, Self::DEFAULT_LIMIT),
        }
    }
}

const SIXTY: NonZeroU64 = NonZeroU64::MIN.saturating_add(59);
