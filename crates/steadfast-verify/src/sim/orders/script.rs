use crate::sim::{
    chooser::{Chooser, Site, Tape},
    orders::{session::Session, workload::Workload},
    wire::{Kind, catalogue},
};

/// Describes the choices of a tape in words.
pub(crate) fn script(tape: &Tape) -> String {
    let workload = Workload::of(&Chooser::tape(tape.clone()));
    let mut lines = Vec::new();
    for (site, choice) in tape.iter().filter(|(site, _)| site.thing() == 0 && site.turn() == 0) {
        if !site.what().starts_with("order.") && site.what() != "order" {
            lines.push(format!("  {} = {choice}", site.what()));
        }
    }
    for wanted in &workload.wanted {
        let mut line = format!(
            "  order {}: {}, caller {}, at {} ms",
            wanted.number,
            wanted.shape,
            wanted.caller,
            wanted.at.as_millis()
        );
        if wanted.named {
            line += ", named";
        }
        if let Some(patience) = wanted.patience {
            line += &format!(", given up after {} ms", patience.as_millis());
        }
        if wanted.cancelled {
            line += ", cancelled once placed";
        }
        lines.push(line);
        lines.extend(of_order(tape, wanted.number));
    }
    for (what, kind, name) in [("list.fault", Kind::List, "read"), ("cancel.fault", Kind::Cancel, "cancel")] {
        for (site, choice) in tape.iter().filter(|(site, _)| site.what() == what) {
            let fault = catalogue(kind).get(choice as usize).map_or("?", |fault| fault.name);
            lines.push(format!("  {name} {}: {fault}", site.thing()));
        }
    }
    for (site, choice) in tape.iter().filter(|(site, _)| site.what() == "pipe.fault") {
        let bytes = tape.get(Site::new("pipe.bytes").of(site.thing()));
        let fate = match choice {
            1 => "is refused".to_owned(),
            2 => format!("breaks after {bytes} bytes of requests"),
            _ => format!("breaks after {bytes} bytes of answers"),
        };
        lines.push(format!("  connection {}: {fate}", site.thing()));
    }
    let latencies = tape
        .iter()
        .filter(|(site, _)| matches!(site.what(), "list.up" | "list.down" | "cancel.up" | "cancel.down"));
    lines
        .extend(latencies.map(|(site, choice)| format!("  {} {}: draw {choice}", site.what(), site.thing())));
    lines.join("\n")
}

fn of_order(tape: &Tape, number: u64) -> Vec<String> {
    let sends = tape.iter().filter(|(site, _)| site.thing() == number && site.turn() > 0);
    sends
        .filter_map(|(site, choice)| {
            let nth = site.turn();
            Some(match site.what() {
                "place.fault" => {
                    let fault = catalogue(Kind::Place).get(choice as usize).map_or("?", |fault| fault.name);
                    format!("    send {nth}: {fault}")
                }
                "place.late" => format!("    send {nth}: exists {choice} ms after it arrived"),
                "place.slow" => format!("    send {nth}: arrives {choice} ms later"),
                "place.up" | "place.down" => format!("    send {nth}: {} draw {choice}", site.what()),
                _ => return None,
            })
        })
        .collect()
}

/// Describes the results of a run, order by order, for people who look for the cause.
pub(crate) fn course(workload: &Workload, session: &Session) -> String {
    let mut lines = Vec::new();
    for (wanted, told) in workload.wanted.iter().zip(&session.told) {
        lines.push(format!("  order {} was told: {told:?}", wanted.number));
    }
    for arrival in &session.truth.arrivals {
        let (at, status) = (arrival.at_ns / 1_000_000, arrival.status);
        let intent = arrival.intent.as_deref().unwrap_or_default();
        lines.push(format!(
            "  {at:>8} ms  {} {} {intent} {status} {:?}",
            arrival.method, arrival.path, arrival.faults
        ));
    }
    for order in session.truth.orders.iter().filter(|order| order.intent.is_some()) {
        let intent = order.intent.as_deref().unwrap_or_default();
        lines.push(format!(
            "  {:>8} ms  {} exists for {intent}",
            order.applied_ns / 1_000_000,
            order.order_id
        ));
    }
    lines.extend(session.events.iter().map(|event| format!("  reported: {event:?}")));
    lines.join("\n")
}
