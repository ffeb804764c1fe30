use std::{num::NonZeroU64, ops::Range, path::PathBuf, str::FromStr, time::Duration};

use clap::ValueEnum;
use steadfast::dedup::{AccountMode, Settings};

use crate::sim::{
    axes::Axes,
    console::complain,
    orders::{
        campaign::{Campaign, FEW, MOST_FAILURES},
        canary::Canary,
        ours::Medium,
        outcome::Outcome,
        remarks::Echo,
        world::Expected,
    },
};

/// The command line of `sim orders`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Prints JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// Runs this seed only.
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "tape"])]
    pub seed: Option<u64>,
    /// Runs these seeds: `A..B`, B excluded, or `A..`.
    #[arg(long, value_name = "A..B", default_value = "0..")]
    pub seeds: Seeds,
    /// Begins with a seed of the code's own, so that each state of it runs other seeds, and always the same ones.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "tape"])]
    pub seeds_of_commit: bool,
    /// Replays a tape, such as a failure leaves behind, and says in words how it went.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "json"])]
    pub tape: Option<PathBuf>,
    /// Ends with the seed that completes so many orders: a million, and with `--state` never.
    #[arg(long, value_name = "N")]
    pub orders: Option<NonZeroU64>,
    /// Goes on with the campaign in this file, or begins it; it is written every few seconds, so that a campaign can be
    /// run in slices and killed at any time.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "tape"])]
    pub state: Option<PathBuf>,
    /// The commit, or the hash of our crates, that the sums of a campaign are kept for.
    #[arg(long, value_name = "HASH", env = "STEADFAST_COMMIT", default_value = "", hide_env = true)]
    pub commit: String,
    /// Ends with the first seed that breaks a promise, and only names it.
    #[arg(long)]
    pub first: bool,
    /// Begins no new seed after so many minutes.
    #[arg(long, value_name = "M")]
    pub minutes: Option<NonZeroU64>,
    /// Begins no new seed after so many seconds.
    #[arg(long, value_name = "S", conflicts_with = "minutes")]
    pub seconds: Option<NonZeroU64>,
    /// Lets orders come to exist up to ten minutes after they were given up: every duplicate must be reported.
    #[arg(long)]
    pub unbounded: bool,
    /// Runs the client's conservative settings.
    #[arg(long)]
    pub conservative: bool,
    /// The lateness bound that the client assumes, in seconds, if it is not to be the true one: less than that breaks
    /// the client's promise, and shows that the simulation notices.
    #[arg(long, value_name = "S")]
    pub assume_lateness: Option<u64>,
    /// The connection between the client and the gateway.
    #[arg(long, value_enum, default_value_t = Medium::Direct)]
    pub wire: Medium,
    /// Leaves the lists, and what the specification leaves open, as plain as can be, and spares what is sent again, and
    /// cancels, whose storms of 429s hold back every look: then every order must be resolved.
    #[arg(long, conflicts_with = "unbounded")]
    pub plain: bool,
    /// Kills the process once in each session, and lets another one go on with its journal.
    #[arg(long, conflicts_with = "unbounded")]
    pub crashes: bool,
    /// The rivals trade one seed out of so many; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rivals_every: u64,
    /// In one seed of so many the tracker keeps its history, and the invariants are checked over it; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub trace_every: u64,
    /// Fails unless every fault has struck a hundred times, and every outcome and state of the journal was met; with
    /// `--wire pipe`, unless all has happened to connections that can.
    #[arg(long)]
    pub demand_existence: bool,
    /// Fails unless so many seeds were run, with so many orders: a run that its time has cut short proves less.
    #[arg(long, value_name = "SEEDS,ORDERS")]
    pub floor: Option<Floor>,
    /// Adds behaviours of the world, such as `orphans`: names with commas between them, `all` or `none`.
    #[arg(long, value_name = "NAMES", default_value_t = Axes::DEFAULT)]
    pub axes: Axes,
    /// The client takes the account for shared, as it then is in half of the seeds: it claims no order by its terms.
    #[arg(long)]
    pub shared: bool,
    /// Trades 50 to 100 orders in each session.
    #[arg(long)]
    pub long: bool,
    /// Gives each session three equal orders of three callers, so that no later one reads the list by chance.
    #[arg(long, conflicts_with = "long")]
    pub few: bool,
    /// Shows this much of the remarks of orders in all lists, with the axis `remarks`: a value of the sandbox's axis of
    /// that name.
    #[arg(long, value_name = "VALUE")]
    pub echo: Option<Echo>,
    /// Ends connections in an orderly way although the transport says that nothing arrives after their end: with the
    /// axis `orphans` the run must fail.
    #[arg(long)]
    pub orderly_close: bool,
    /// Makes the client wrong on purpose: then the run must fail.
    #[arg(long, value_enum, conflicts_with = "crashes")]
    pub canary: Option<Canary>,
    /// Leaves a choice at its plain value, by the name that it has on tapes, such as `list.form`; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub without: Vec<String>,
}

impl Args {
    /// Returns the campaign that it asks for.
    pub(crate) fn campaign(&self) -> Campaign {
        let settings = if self.conservative { Settings::conservative() } else { Settings::new() };
        let mode = if self.shared { AccountMode::Shared } else { AccountMode::Exclusive };
        let settings = settings.account_mode(mode);
        let expected = if self.unbounded { Expected::Later } else { Expected::WithinTheBound };
        let mut campaign = Campaign::endless(settings.clone(), expected);
        if let Some(seconds) = self.assume_lateness {
            campaign.world.settings = settings.lateness(Duration::from_secs(seconds));
        }
        campaign.seeds = match self.seed {
            Some(seed) => seed..seed + 1,
            None if self.seeds_of_commit => first_seed(&self.commit)..u64::MAX,
            None => self.seeds.0.clone(),
        };
        let many = if self.state.is_some() { u64::MAX } else { 1_000_000 };
        campaign.orders = self.orders.map_or(many, NonZeroU64::get);
        let minutes = self.minutes.map(|minutes| minutes.get().saturating_mul(60));
        campaign.time = minutes.or(self.seconds.map(NonZeroU64::get)).map(Duration::from_secs);
        campaign.world.medium = self.wire;
        campaign.most_failures = if self.first { 1 } else { MOST_FAILURES };
        campaign.without.clone_from(&self.without);
        campaign.world.crashes = self.crashes;
        campaign.world.canary = self.canary;
        campaign.world.axes = self.axes;
        campaign.world.echo = self.echo;
        if self.long {
            campaign.fixed.push(("orders.many", None, 0));
        }
        if self.few {
            campaign.fixed.extend(FEW);
        }
        campaign.world.orderly_close = self.orderly_close;
        if self.plain {
            campaign.world.plain = true;
            campaign.without.extend(OPEN_QUESTIONS.map(str::to_owned));
        }
        // A finding in a seed must be reproduced by that seed alone, for any number.
        let every = |n: u64| if self.seed.is_some() { n.min(1) } else { n };
        campaign.rivals_every = every(self.rivals_every);
        campaign.trace_every = every(self.trace_every);
        campaign
    }

    /// Returns the command line options that change what is promised or assumed.
    pub(crate) fn modes(&self) -> String {
        let mut modes = String::new();
        if self.unbounded {
            modes += " --unbounded";
        }
        if self.conservative {
            modes += " --conservative";
        }
        if let Some(seconds) = self.assume_lateness {
            modes += &format!(" --assume-lateness {seconds}");
        }
        if self.wire == Medium::Pipe {
            modes += " --wire pipe";
        }
        if self.crashes {
            modes += " --crashes";
        }
        if let Some(canary) = self.canary.and_then(|canary| canary.to_possible_value()) {
            modes += &format!(" --canary {}", canary.get_name());
        }
        if self.shared {
            modes += " --shared";
        }
        if self.long {
            modes += " --long";
        }
        if self.few {
            modes += " --few";
        }
        if let Some(echo) = self.echo {
            modes += &format!(" --echo {echo}");
        }
        if self.orderly_close {
            modes += " --orderly-close";
        }
        if self.axes != Axes::DEFAULT {
            modes += &format!(" --axes {}", self.axes);
        }
        if self.plain {
            modes += " --plain";
        }
        for name in &self.without {
            modes += &format!(" --without {name}");
        }
        modes
    }
}

/// A range of seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not of the form A..B");
        let (start, end) = text.split_once("..").ok_or_else(wrong)?;
        let start = start.parse().map_err(|_| wrong())?;
        let end = if end.is_empty() { u64::MAX } else { end.parse().map_err(|_| wrong())? };
        if start < end { Ok(Self(start..end)) } else { Err(format!("{text:?} holds no seed")) }
    }
}

/// The least that a run must have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    seeds: u64,
    orders: u64,
}

impl FromStr for Floor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("{text:?} is not of the form SEEDS,ORDERS");
        let (seeds, orders) = text.split_once(',').unwrap_or((text, ""));
        Ok(Self { seeds: seeds.parse().map_err(wrong)?, orders: orders.parse().map_err(wrong)? })
    }
}

impl Floor {
    /// True if a run did as much; says so if not.
    pub(crate) fn is_reached(self, outcome: &Outcome) -> bool {
        let reached = outcome.seeds >= self.seeds && outcome.ours.orders >= self.orders;
        if !reached {
            let Self { seeds, orders } = self;
            complain(format_args!("too little was run: the floor is {seeds} seeds, {orders} orders"));
        }
        reached
    }
}

/// The sites at which lists fail or are written differently, sessions and callers end early, and refusals of other
/// requests hold back every read.
const OPEN_QUESTIONS: [&str; 11] = [
    "day",
    "orders.interval",
    "swarm.reads",
    "swarm.refused-share",
    "swarm.cancels",
    "list.form",
    "list.scope",
    "list.order",
    "token.dies",
    "order.patience",
    "retry-after",
];

/// Returns the first seed for a state of the code; a modified tree has the same one as its commit.
fn first_seed(commit: &str) -> u64 {
    let commit = commit.trim_end_matches("-dirty");
    // Small enough for a number in JSON, and a million apart, so that two commits share no seed.
    u64::from(crc32fast::hash(commit.as_bytes())) * 1_000_000
}
