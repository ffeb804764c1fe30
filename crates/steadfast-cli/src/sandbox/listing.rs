//! `steadfast sandbox --list-faults`: the faults, and the items of the fault catalogue that they cover.

use serde_json::{Value, json};
use steadfast_sandbox::{Cover, Fault, Place, SpecReading, catalogue};

use crate::stdout::print_line;

pub(crate) fn print(as_json: bool) {
    if as_json {
        print_line(json!({"faults": faults(), "axes": axes(), "catalogue": items()}));
        return;
    }
    let mut group = "";
    for &fault in Fault::ALL {
        if fault.group() != group {
            group = fault.group();
            print_line(format_args!("\n{group}"));
        }
        let place = if fault.place() == Place::Connection { " Over connections only." } else { "" };
        let (name, items, what) = (fault.as_str(), fault.covers().join(" "), fault.summary());
        print_line(format_args!("  {name:<36} {items:<8} {what}{place}"));
    }
    print_line(format_args!(
        "\naxes of interpretation (--interpret AXIS=VALUE; the first value is the default)"
    ));
    for axis in SpecReading::AXES {
        print_line(format_args!("  {:>2} {:<16} {}", axis.number, axis.name, axis.values.join(" ")));
    }
}

fn faults() -> Vec<Value> {
    let fault = |fault: &Fault| {
        let place = if fault.place() == Place::Connection { "connection" } else { "anywhere" };
        json!({
            "name": fault.as_str(), "group": fault.group(), "catalogue": fault.covers(), "place": place,
            "what": fault.summary(),
        })
    };
    Fault::ALL.iter().map(fault).collect()
}

fn axes() -> Vec<Value> {
    let axis = |axis: &steadfast_sandbox::Axis| json!({"number": axis.number, "name": axis.name, "values": axis.values});
    SpecReading::AXES.iter().map(axis).collect()
}

fn items() -> Vec<Value> {
    let cover = |cover: Cover| match cover {
        Cover::Fault(fault) => json!({"fault": fault.as_str()}),
        Cover::Axis(name) => json!({"axis": name}),
        Cover::Test(file, name) => json!({"test": name, "file": file}),
        _ => Value::Null,
    };
    let rows = catalogue().into_iter();
    let item = rows.map(|row| {
        let covered: Vec<Value> = row.covered.into_iter().map(cover).collect();
        json!({"id": row.id, "what": row.what, "covered": covered})
    });
    item.collect()
}
