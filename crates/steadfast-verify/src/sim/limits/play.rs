use tower::BoxError;

use super::{
    client::Queue,
    contender::Contender,
    gateway::Gateway,
    load::{LAG, Load, Settle},
    ours::{Setup, Steadfast},
    peers::{Burst, Governor, LogAtSend},
    row::Row,
    session::Session,
    tally::Tally,
    tokio_peers,
};
use crate::sim::network::Nanos;

/// Plays one session of a row.
///
/// # Errors
///
/// The error of a limiter's setup; no row of the matrix has one.
pub(super) fn play(row: Row, seed: u64, number: u64, length: Nanos) -> Result<(Tally, Gateway), BoxError> {
    let session = Session::new(row, seed, number);
    let played = match row.contender {
        Contender::Steadfast(_) | Contender::Preset | Contender::PriorityOnly | Contender::OneQueue => {
            let settle = if row.load == Load::Late(Settle::Set) { LAG } else { 0 };
            let setup = Setup { zone: row.zone, contender: row.contender, settle };
            session.run(&mut Steadfast::new(setup)?, length)
        }
        Contender::Governor => session.run(&mut Queue::new(Governor::new(row.zone, Burst::Whole)), length),
        Contender::GovernorPaced => session.run(&mut Queue::new(Governor::new(row.zone, Burst::One)), length),
        Contender::LogAtSend => session.run(&mut Queue::new(LogAtSend::new(row.zone)), length),
        Contender::Tower | Contender::TowerResilience | Contender::LeakyBucket => {
            return tokio_peers::run(session, row.contender, row.zone, length);
        }
    };
    Ok(played?)
}
