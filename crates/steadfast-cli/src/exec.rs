//! `steadfast exec`: runs a program behind a proxy of its own.

use std::ffi::OsString;

use crate::{
    account::SECRETS,
    exit::Failed,
    proxy::{self, Served, Task},
};

const CHILD: &str = "\
The program finds the proxy in STEADFAST_BASE_URL, STEADFAST_API_KEY and STEADFAST_ACCESS_TOKEN, so that a client that reads \
these needs no change: the token is the proxy's local one, and no other STEADFAST_ variable is passed on. With --listen, \
STEADFAST_SOCKET is the path of the socket. SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM and SIGWINCH go to the \
program; what a terminal sends, such as Ctrl-C, reaches it by itself. When it has ended, the proxy ends as `proxy` does. The \
exit code is the program's, 128 and the signal's number if a signal ended it. It is 6 if an order is in doubt or unresolved \
then, whatever the program's own code, and if an event wants a look and the program's own code is 0.";

/// The options of the verb.
#[derive(clap::Args)]
#[command(after_help = format!("{CHILD}\n\n{SECRETS}"))]
pub(crate) struct Args {
    #[command(flatten)]
    served: Served,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    proxy::serve(args.served, Task::Run(args.command)).await
}
