use std::path::PathBuf;

use steadfast::BaseUrl;

use crate::{account, resends::Resends};

#[derive(clap::Args)]
#[command(after_help = account::SECRETS)]
pub(crate) struct Args {
    /// CSV with the header symId,qty,side,type,product,validity,limitPrice,trigPrice; - is standard input. The
    /// last row has a line end too: without one the file may be cut, and is refused. Each run sends the rows again that were
    /// refused or turned away before; what earlier runs have placed or left in doubt is not sent again. Within a run, an order
    /// without a clear answer is looked for, and sent once more if two lists do not show it.
    pub(super) file: PathBuf,
    /// Place the orders with this service, for real. If absent, STEADFAST_BASE_URL names it; without either, the orders go
    /// to a sandbox of this command's own, and nothing real is placed.
    #[arg(long, value_name = "URL", conflicts_with = "sandbox")]
    pub(super) base_url: Option<BaseUrl>,
    /// Rehearse with a sandbox of this command's own, whatever STEADFAST_BASE_URL says.
    #[arg(long)]
    pub(super) sandbox: bool,
    /// Read the file, name what is wrong with it, and place nothing anywhere.
    #[arg(long, conflicts_with_all = ["yes", "out", "journal", "resend_absent", "never_resend", "refusal_lag", "in_order"])]
    pub(super) check: bool,
    /// Place real orders without a question. Without any terminal, as in a cron job, --base-url asks none either.
    #[arg(long, short)]
    pub(super) yes: bool,
    /// The file that keeps the token; one for each account below the user's state directory if absent.
    #[arg(long, value_name = "FILE", env = "STEADFAST_STORE", hide_env_values = true)]
    pub(super) store: Option<PathBuf>,
    /// Write down each order before it is sent, so that a run that dies can be run again. With a service, STEADFAST_JOURNAL
    /// if absent, as for `orders`, else the orders' file with .journal behind its name. One file has one journal, and the
    /// variable must name another one for each file.
    #[arg(long, value_name = "FILE")]
    pub(super) journal: Option<PathBuf>,
    /// Write what became of each row to this file or device instead of standard output; a file is put there once it is
    /// whole.
    #[arg(long, value_name = "RESULT.csv")]
    pub(super) out: Option<PathBuf>,
    /// Print the counts as one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    /// Place orders of earlier runs once more that were looked for and are not there, at the risk that they are only late.
    #[arg(long, conflicts_with = "never_resend")]
    pub(super) resend_absent: bool,
    #[command(flatten)]
    pub(super) resends: Resends,
    /// Send a row only when the one before has its result. Without it rows are sent side by side, as the quota allows, and a
    /// later one may be executed before an earlier one.
    #[arg(long)]
    pub(super) in_order: bool,
    /// Show no progress.
    #[arg(long, short)]
    pub(super) quiet: bool,
}
