//! `steadfast orders verify`: looks for orders in doubt in the service's order list.

use std::path::Path;

use steadfast::{
    Client, Error, Operation,
    dedup::{OrderEvent, Recover, Settings},
};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};

use super::{Search, Unresolved, missing, next_step::NextSteps, print, standing};
use crate::{
    account::{self, keep_refusal},
    client,
    dead_token::refuse_dead_token,
    events::{Contradicted, Heard, Kept, Told, ToldBefore},
    exit::{Failed, print_note},
    peer::Peer,
    resends::Resends,
    sends::Sends,
    signal::Signals,
};

pub(super) const INTERRUPTED: &str = "\
Ctrl-C, SIGTERM and SIGHUP end the search. What it has learned is written down and told as after a whole one, with exit code 6 if \
an order is still in doubt or an event wants a look, and 130 if not.";

#[derive(clap::Args)]
pub(super) struct Verify {
    #[command(flatten)]
    account: account::Whose,
    #[command(flatten)]
    journal: Unresolved,
}

pub(super) async fn run(args: Verify) -> Result<(), Failed> {
    let Unresolved { journal, json } = args.journal;
    if !journal.exists() {
        return Err(missing(&journal));
    }
    let peer = Peer::at(&args.account.base_url).await?;
    let sends = Sends::default();
    let client = client::open(args.account, Some(journal.clone()), Resends::NONE, &sends, &peer).await?;
    let steps = NextSteps::of(&journal, Settings::default().today()).after_a_look();
    let recovered = client.recovered().map_err(Failed::error)?;
    let count = recovered.iter().filter(|order| steps.may_be_listed(order)).count();
    if count > 0 {
        // Not yet resolved, so there is no result to show.
        print_note(format_args!(
            "looking for orders in doubt: {count}; this may take {} s, and a last look about 20 s more",
            Settings::default().verification_bound().as_secs()
        ));
    }
    if count < recovered.len() {
        print_note(format_args!(
            "orders of an earlier day, which are not looked for, because the order list holds the orders of today only: {}",
            recovered.len() - count
        ));
    }
    let answered = steps.answered_today(&recovered);
    if answered > 0 {
        print_note(format_args!(
            "orders that were answered today: {answered}; the order list is read for them, and one that it does not show is looked \
             for, which may take two minutes"
        ));
    }
    let mut events = client.tracker().events();
    let mut signals = Signals::listen();
    let search = async {
        if count + answered > 0 {
            let not_done = format!("orders in doubt, which were not looked for: {count}");
            refuse_dead_token(&client, &not_done, "`steadfast orders verify`").await?;
            look(&client).await.map_err(Failed::unavailable)?;
        }
        client.shutdown().await;
        Ok(Search::Ended)
    };
    let search = tokio::select! {
        biased;
        () = signals.next() => Ok(Search::Interrupted),
        ended = search => ended,
    };
    if let Ok(Search::Interrupted) = search {
        print_note("interrupted: the search ended early; an order that it had not found is still in doubt");
    }
    // An answer that the last look has contradicted is in doubt, too.
    let orders = client.recovered().map_err(Failed::error)?;
    keep_refusal(client.tokens()).await;
    let kept = Kept::beside(&journal);
    let lost = keep(&mut events, &kept, &journal);
    let told = match search {
        Ok(search) => print(&orders, &standing(&kept)?, &steps, &journal, json, search),
        Err(failed) => Err(failed),
    };
    if lost == 0 { told } else { Err(Failed::outcome_unknown()) }
}

/// Looks for the orders in doubt, if there are any. [`Client::recover`] alone would do nothing without one, and a last
/// look reads no list then.
async fn look(client: &Client) -> Result<(), Error> {
    let mut request = client.request(&Operation::orders())?;
    request.extensions_mut().insert(Recover);
    client.raw(request).await.map(drop)
}

/// Writes down the events that have come. Returns how many could not be written; those are printed.
fn keep(events: &mut Receiver<OrderEvent>, kept: &Kept, journal: &Path) -> usize {
    let (mut contradicted, mut told_before) = (Contradicted::default(), ToldBefore::beside(journal));
    let mut lost = 0;
    loop {
        let told = match events.try_recv() {
            Ok(event) => contradicted.tell(&event, |_| false),
            Err(TryRecvError::Lagged(missed)) => Told::missed(missed),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return lost,
        };
        match told {
            Told::Stands(seen) if told_before.hear(&seen) == Heard::Cleared => {
                print_note(format_args!("looked at before, and cleared: {}", seen.sentence()));
            }
            Told::Stands(seen) => {
                if let Err(error) = kept.keep(&seen) {
                    let path = kept.path().display();
                    print_note(format_args!(
                        "steadfast: {path}: {error}: not written down: {}",
                        seen.sentence()
                    ));
                    lost += 1;
                }
            }
            Told::Note(note) => print_note(note),
            Told::Elsewhere => {}
        }
    }
}
