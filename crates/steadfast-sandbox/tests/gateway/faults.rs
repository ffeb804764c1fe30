//! Every fault strikes by its name, and does exactly what its documentation says, on the wire and in the ground
//! truth.

mod accept;
mod answer;
mod auth;
mod connection;
mod list;
mod placement;
mod quota;
mod rates;
mod samples;
mod scripts;
mod time;
mod transport;

use std::collections::BTreeSet;

use steadfast_sandbox::Fault;

/// Returns the faults in the tables of this folder; a test checks each table row by row.
fn tested() -> Vec<Fault> {
    let tables = [
        placement::faults(),
        list::faults(),
        auth::faults(),
        quota::faults(),
        connection::faults(),
        accept::faults(),
        answer::faults(),
        transport::faults(),
        time::faults(),
    ];
    tables.concat()
}

#[test]
fn every_fault_has_one_row_in_one_table() {
    let rows = tested();
    let distinct: BTreeSet<Fault> = rows.iter().copied().collect();
    assert_eq!(distinct.len(), rows.len(), "a fault has two rows");
    assert_eq!(distinct, Fault::ALL.iter().copied().collect());
}
