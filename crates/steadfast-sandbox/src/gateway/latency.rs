use std::time::Duration;

use crate::{faults::Fault, gateway::draw::Draw};

/// Returns how long one leg of a request's way takes under a fault of the group `time`.
pub(crate) fn delay(fault: Fault, draw: Draw, key: &str) -> Duration {
    let name = fault.as_str();
    let (leg, profile) = name.split_once('-').unwrap_or((name, ""));
    let one_in = |n: f64| draw.fraction(leg, &format!("{key} tail")) < 1.0 / n;
    let part = draw.fraction(leg, key);
    let millis = match profile {
        "constant" => 20.0,
        "lan" => 0.5 * part,
        "cloud" if one_in(100.0) => 20.0,
        "cloud" => 1.0 + 2.0 * part,
        // A lost segment is sent again after 200 ms, and each further time after twice as long.
        "internet" if one_in(50.0) => 200.0 * f64::from(1_u32 << draw.below(leg, &format!("{key} again"), 4)),
        "internet" => 10.0 + 50.0 * part,
        "bad" if one_in(10.0) => 3_000.0 + 7_000.0 * part,
        "bad" => 100.0 + 2_900.0 * part * part,
        // Requests sent within 50 ms of it arrive before it.
        "reordered" => 50.0,
        _ => 0.0,
    };
    Duration::from_secs_f64(millis / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentile(fault: Fault, share: f64) -> Duration {
        let mut delays: Vec<Duration> =
            (0..5_000).map(|i| delay(fault, Draw::new(1), &i.to_string())).collect();
        delays.sort_unstable();
        delays[(5_000.0 * share) as usize]
    }

    #[test]
    fn each_profile_has_its_middle_and_its_tail() {
        let millis = Duration::from_millis;
        for (fault, middle, tail) in [
            (Fault::TimeUpConstant, 20..=20, 20..=20),
            (Fault::TimeUpLan, 0..=1, 0..=1),
            (Fault::TimeDownCloud, 1..=3, 20..=20),
            (Fault::TimeDownInternet, 10..=60, 200..=1_600),
            (Fault::TimeUpBad, 100..=3_000, 3_000..=10_000),
            (Fault::TimeUpReordered, 50..=50, 50..=50),
        ] {
            let (half, most) = (percentile(fault, 0.5), percentile(fault, 0.998));
            assert!((millis(*middle.start())..=millis(*middle.end())).contains(&half), "{fault}: {half:?}");
            assert!((millis(*tail.start())..=millis(*tail.end())).contains(&most), "{fault}: {most:?}");
        }
    }

    #[test]
    fn every_fault_of_the_group_takes_time_and_no_other_does() {
        for &fault in Fault::ALL {
            let takes = !delay(fault, Draw::new(1), "1").is_zero();
            assert_eq!(takes, fault.group() == "time", "{fault}");
        }
    }
}
