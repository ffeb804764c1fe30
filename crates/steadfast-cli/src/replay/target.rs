use std::io::{self, IsTerminal};

use steadfast::BaseUrl;

use crate::{
    config,
    exit::{Failed, print_note},
    peer::Peer,
    question::confirmed,
    secret::variable_of,
};

/// The destination of the orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A sandbox of the command's own: nothing real is placed.
    Sandbox,
    /// An address, whose orders must be taken for real unless a sidecar there says that they are a sandbox's.
    Service { base: BaseUrl, named: Named, peer: Peer },
}

/// Where the service's address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// From `--base-url` on this command line, so it is meant for this run.
    Here,
    /// From the environment or the config file, where it may have been set for another verb, or yesterday.
    Elsewhere,
}

impl Target {
    /// Chooses the service of the command line, else that of the environment or the config file; a sandbox if there is
    /// none, or if requested. Without a service `--yes` is refused: it was meant for real orders.
    pub(super) async fn choose(base_url: Option<&BaseUrl>, sandbox: bool, yes: bool) -> Result<Self, Failed> {
        if sandbox {
            return Ok(Self::Sandbox);
        }
        if let Some(base) = base_url {
            return Self::at(base.clone(), Named::Here).await;
        }
        config::refuse_empty_address()?;
        match variable_of("STEADFAST_BASE_URL")?.or_else(|| config::base_url().map(str::to_owned)) {
            None if yes => Err(Failed::usage(
                "nothing was sent: --yes asks for real orders, and neither --base-url nor STEADFAST_BASE_URL nor the config file \
                 names a service; name one, or give --sandbox to rehearse",
            )),
            None => Ok(Self::Sandbox),
            Some(text) => {
                // The config file's was checked as it was read.
                let base = text
                    .parse()
                    .map_err(|error| Failed::usage(format_args!("STEADFAST_BASE_URL: {error}")))?;
                Self::at(base, Named::Elsewhere).await
            }
        }
    }

    async fn at(base: BaseUrl, named: Named) -> Result<Self, Failed> {
        let peer = Peer::at(&base).await?;
        Ok(Self::Service { base, named, peer })
    }

    /// True if nothing real is placed.
    pub(super) fn is_rehearsal(&self) -> bool {
        match self {
            Self::Sandbox => true,
            Self::Service { peer, .. } => peer.is_rehearsal(),
        }
    }

    /// Returns the sandbox of a rehearsal, as its last line names it.
    pub(super) fn sandbox(&self) -> &'static str {
        match self {
            Self::Sandbox => "the own sandbox",
            Self::Service { .. } => "the sidecar's sandbox",
        }
    }

    /// Returns its name in `--json`.
    pub(super) fn word(&self) -> String {
        match self {
            Self::Service { base, .. } if !self.is_rehearsal() => base.to_string(),
            _ => "sandbox".to_owned(),
        }
    }

    /// Prints the first line of a run that can begin: whether its orders are real.
    pub(super) fn announce(&self, orders: usize, account: &str) {
        let s = if orders == 1 { "" } else { "s" };
        match self {
            Self::Sandbox => print_note("REHEARSAL: own sandbox, nothing real is placed"),
            Self::Service { base, peer, .. } if peer.is_rehearsal() => print_note(format_args!(
                "REHEARSAL: sandbox of the sidecar at {base}, nothing real is placed"
            )),
            Self::Service { base, .. } => {
                print_note(format_args!("placing {orders} order{s} at {base} (account {account})"));
            }
        }
    }
}

/// Returns whether the user must be asked before real orders are placed.
///
/// A person at a terminal is asked. If that is not possible, because input or screen is not the terminal, `--yes` is
/// required. Without any terminal the command line must ask for real orders, by `--yes` or by naming the service.
pub(super) fn must_ask(named: Named, yes: bool) -> Result<bool, Failed> {
    if yes {
        return Ok(false);
    }
    let (hears, speaks) = (io::stdin().is_terminal(), io::stderr().is_terminal());
    if hears != speaks {
        return Err(Failed::usage(
            "nothing was sent: there is a terminal, and no question can be asked, because standard input or standard error \
             leads elsewhere; give --yes to place real orders, or --sandbox to rehearse",
        ));
    }
    match named {
        _ if hears => Ok(true),
        Named::Here => Ok(false),
        Named::Elsewhere => Err(Failed::usage(
            "nothing was sent: the service is named by STEADFAST_BASE_URL or the config file alone, and there is no terminal for a question; \
             give --yes or --base-url to place real orders, or --sandbox to rehearse",
        )),
    }
}

/// Asks a person at a terminal whether the orders are to be placed as planned.
pub(super) async fn ask(plan: &str) -> Result<(), Failed> {
    if confirmed(format!("{plan}; place them? [y/N] ")).await? {
        Ok(())
    } else {
        Err(Failed::error("nothing was sent"))
    }
}
