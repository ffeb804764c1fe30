//! How large a log gets, and how long it takes to open.

use std::path::Path;

use steadfast_dedup::{
    Epoch,
    journal::{Log, Record},
};

use crate::{acknowledged, begun, deep, disk::SimDisk, intent_of};

const PATH: &str = "/j/orders.journal";

#[test]
fn a_log_is_bounded_by_what_still_matters() {
    let disk = SimDisk::default();
    let mut log = Log::open(disk.clone(), PATH).unwrap();
    // J16: ten million records.
    let orders = if deep() { 5_000_000 } else { 10_000 };
    let mut largest = 0;
    // A new day every thousand orders; of earlier days only what is in doubt is kept.
    for intent in 0..orders {
        let mut send = begun(intent);
        if let Record::Begun { day, .. } = &mut send.record {
            *day = Epoch(i64::try_from(intent / 1_000).unwrap());
        }
        let in_doubt = intent % 5_000 == 0 && intent < 20_000;
        if intent % 1_000 == 0 {
            log.append_durably([&send]).unwrap();
        } else {
            log.append([&send]).unwrap();
        }
        if !in_doubt {
            log.append([&acknowledged(intent)]).unwrap();
        }
        largest = largest.max(log.size());
    }
    assert!(largest < 1_600_000, "{largest} bytes");
    drop(log);
    let start = tokio::time::Instant::now();
    let log = Log::open(disk.clone(), PATH).unwrap();
    println!("{} records, at most {largest} bytes, opened in {:?}", orders * 2, start.elapsed());
    let found: Vec<u64> = log.entries().filter_map(intent_of).collect();
    let first_of_last_day = orders - 1_000;
    assert!(found.iter().all(|&intent| intent % 5_000 == 0 || intent >= first_of_last_day));
    assert!([0, 5_000].iter().all(|intent| found.contains(intent)), "what is in doubt is never forgotten");
    assert!(disk.bytes(Path::new(PATH)).unwrap().len() < 400_000);
}
