use std::collections::BTreeSet;

use steadfast::metrics::METRICS;

// Dashboards and alarms depend on these names and values: a change here is a breaking change.
#[test]
fn names_labels_and_values_are_frozen() {
    let mut lines = String::new();
    for metric in METRICS {
        lines += &format!("{} {:?} {}\n", metric.name, metric.kind, metric.unit.as_str());
        for label in metric.labels {
            let more = if label.is_extended_by_zones { " | ..." } else { "" };
            lines += &format!("    {} = {}{more}\n", label.key, label.values().join(" | "));
        }
    }
    let frozen = include_str!("names.txt");
    assert_eq!(lines, frozen, "what is recorded now:\n{lines}");
}

#[test]
fn every_name_is_one_that_exporters_take_as_it_is() {
    let mut names = BTreeSet::new();
    for metric in METRICS {
        assert!(names.insert(metric.name), "{} is there twice", metric.name);
        let labels = metric.labels.iter().map(|label| label.key);
        for name in labels.chain([metric.name]) {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        }
    }
}
