//! `steadfast orders`: what earlier runs left in doubt.

use std::path::PathBuf;

use serde::Serialize;
use steadfast::{
    BaseUrl, OrderRequest,
    dedup::{RecoveredOrder, Settings, Verdict, journal::FileJournal},
};

use crate::{
    exit::{Failed, print_line, print_note},
    replay::{open_client, with_advice, with_source},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the orders that a journal knows no end of; nothing is asked of the service.
    Unresolved(Unresolved),
    /// Look for them in the service's order list; nothing is ever sent again.
    #[command(after_help = crate::replay::CREDENTIALS)]
    Verify(Verify),
}

#[derive(clap::Args)]
struct Unresolved {
    /// The journal.
    #[arg(long, value_name = "FILE", env = "STEADFAST_JOURNAL")]
    journal: PathBuf,
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Verify {
    /// The service that the orders were sent to.
    #[arg(long, value_name = "URL", env = "STEADFAST_BASE_URL")]
    base_url: BaseUrl,
    #[command(flatten)]
    journal: Unresolved,
}

/// One order that was in doubt.
#[derive(Debug, Serialize)]
struct Row<'a> {
    intent: u64,
    name: Option<&'a str>,
    #[serde(rename = "symId")]
    sym_id: &'a str,
    side: &'static str,
    qty: String,
    /// `in doubt`, `recovered`, or why it is not resolved.
    status: String,
    #[serde(rename = "orderId")]
    order_id: Option<&'a str>,
    candidates: &'a [String],
}

pub(crate) async fn run(args: Args) -> Result<(), Failed> {
    match args.verb {
        Verb::Unresolved(args) => list(&args),
        Verb::Verify(args) => verify(args).await,
    }
}

fn list(args: &Unresolved) -> Result<(), Failed> {
    let found = FileJournal::read(&args.journal).map_err(|error| Failed::usage(with_advice(&error)))?;
    let name = args.journal.display();
    let found = found.ok_or_else(|| Failed::usage(format_args!("{name}: no such file")))?;
    print(&steadfast::dedup::unresolved(&found), args.json)
}

async fn verify(args: Verify) -> Result<(), Failed> {
    let Unresolved { journal, json } = args.journal;
    if !journal.exists() {
        return Err(Failed::usage(format_args!("{}: no such file", journal.display())));
    }
    let client = open_client(args.base_url, Some(journal))?;
    let (count, bound) = (client.recovered().len(), Settings::default().verification_bound());
    if count > 0 {
        // As long as nobody knows, there is nothing to show.
        print_note(format_args!("looking for orders in doubt: {count}; this may take {} s", bound.as_secs()));
    }
    let orders = client.recover().await.map_err(|error| Failed::unavailable(with_source(&error)))?;
    client.shutdown().await;
    print(&orders, json)
}

fn print(orders: &[RecoveredOrder], json: bool) -> Result<(), Failed> {
    let rows: Vec<Row<'_>> = orders.iter().map(Row::of).collect();
    if json {
        print_line(serde_json::to_string(&rows).map_err(Failed::error)?);
    } else {
        for row in &rows {
            let name = row.name.map_or_else(|| format!("#{}", row.intent), str::to_owned);
            let id = row.order_id.unwrap_or("-");
            let candidates = row.candidates.join(" ");
            let Row { side, qty, sym_id, status, .. } = row;
            print_line(format!("{name} {side} {qty} {sym_id} {id} {status} {candidates}").trim_end());
        }
    }
    let unknown = rows.iter().filter(|row| row.order_id.is_none()).count();
    print_note(format_args!("recovered {} unresolved {unknown}", rows.len() - unknown));
    if unknown > 0 { Err(Failed::outcome_unknown()) } else { Ok(()) }
}

impl<'a> Row<'a> {
    fn of(order: &'a RecoveredOrder) -> Self {
        let request: &OrderRequest = &order.order;
        let (status, order_id, candidates) = match &order.verdict {
            Verdict::Acknowledged { order_id } => {
                ("acknowledged".to_owned(), Some(order_id.as_str()), &[][..])
            }
            Verdict::Recovered { order_id, .. } => ("recovered".to_owned(), Some(order_id.as_str()), &[][..]),
            Verdict::Unresolved(unresolved) => {
                (unresolved.reason.to_string(), None, unresolved.candidates.as_slice())
            }
            _ => ("in doubt".to_owned(), None, &[][..]),
        };
        Self {
            intent: order.intent.0,
            name: order.name.as_ref().map(|name| name.as_str()),
            sym_id: request.sym_id().as_str(),
            side: request.side().as_str(),
            qty: request.qty().to_string(),
            status,
            order_id,
            candidates,
        }
    }
}
