mod doubt_plot;
mod quota_plot;
mod wait_plot;

use std::{fmt, time::Duration};

use steadfast_spec::Zone;
use steadfast_svg::{Svg, escape};

use self::{
    doubt_plot::{DoubtPlot, DoubtRow},
    quota_plot::{QuotaPlot, per_second},
    wait_plot::WaitPlot,
};
use super::{
    quota::Usage,
    scenario::{Action, Scenario},
    session::Session,
    table::Table,
    tally::Tally,
    trail::{Trail, words},
    wait::{Until, Waits},
};

/// The run as one self-contained HTML page: styles and plots are inside.
pub(crate) struct Report<'a> {
    seed: u64,
    elapsed: Duration,
    scenario: &'a Scenario,
    names: &'a [&'static str],
    sessions: &'a [Session],
    tallies: &'a [Tally],
}

const STYLE: &str = include_str!("report/page.css");

impl<'a> Report<'a> {
    pub(crate) fn new(
        seed: u64,
        elapsed: Duration,
        scenario: &'a Scenario,
        names: &'a [&'static str],
        sessions: &'a [Session],
        tallies: &'a [Tally],
    ) -> Self {
        Self { seed, elapsed, scenario, names, sessions, tallies }
    }

    fn night(&self) -> Option<Duration> {
        let mut events = self.scenario.events.iter();
        events.find(|event| event.action == Action::Revoke).map(|event| event.at)
    }

    fn tiles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, r#"<div class="tiles">"#)?;
        for (name, tally) in self.names.iter().zip(self.tallies) {
            let orders = &tally.orders;
            let kept = if orders.duplicated == 0 { "kept" } else { "broken" };
            writeln!(
                f,
                r#"<div class="tile"><h2>{name}</h2><div class="number {kept}">{}</div><p>duplicate orders</p><p>{} of {} placed, {} of {} in doubt recovered</p><p>{} answers with 429</p></div>"#,
                orders.duplicated,
                orders.placed,
                orders.asked,
                orders.recovered,
                orders.went_in_doubt,
                tally.http_429,
            )?;
        }
        writeln!(f, "</div>")
    }

    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<(&str, &Tally)> = self.names.iter().copied().zip(self.tallies).collect();
        writeln!(f, "<section><h2>All figures</h2><table><thead><tr><th></th>")?;
        for name in self.names {
            writeln!(f, "<th>{name}</th>")?;
        }
        writeln!(f, "</tr></thead><tbody>")?;
        for (name, cells) in Table(&columns).rows() {
            let inner = if name.starts_with(' ') { r#" class="in""# } else { "" };
            write!(f, "<tr><td{inner}>{}</td>", escape(name.trim()))?;
            let should_be_zero = matches!(name.trim(), "duplicated" | "lost" | "unresolved" | "429s");
            for cell in cells {
                let class = match (should_be_zero, cell == "0") {
                    (true, true) => r#" class="good""#,
                    (true, false) => r#" class="bad""#,
                    (false, _) => "",
                };
                write!(f, "<td{class}>{}</td>", escape(&cell))?;
            }
            writeln!(f, "</tr>")?;
        }
        writeln!(f, "</tbody></table></section>")
    }

    fn quotas(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usages: Vec<Usage> = self.sessions.iter().map(Usage::of).collect();
        let seconds =
            self.sessions.iter().map(|session| (session.end.saturating_sub(session.start)).as_secs() + 1);
        let seconds = usize::try_from(seconds.max().unwrap_or_default()).unwrap_or_default();
        writeln!(
            f,
            r#"<section><h2>Requests against the quota</h2>
<p>What each second brought to the gateway. It counts by a sliding log: no more than the quota is admitted in any second, whenever it begins.</p>
<ul class="legend"><li><i class="blue"></i>admitted</li><li><i class="red"></i>refused with 429</li><li><i class="dash ink"></i>quota</li></ul>"#
        )?;
        for (zone, title) in [
            (Zone::PLACE_ORDER, "Place Order zone, 10 a second"),
            (Zone::GENERAL, "General zone, 10 a second and 400 a minute"),
        ] {
            let of_zone: Vec<_> = usages.iter().filter_map(|usage| usage.of_zone(zone)).collect();
            let most = of_zone.iter().map(|usage| {
                let all: Vec<Duration> = usage.admitted.iter().chain(&usage.refused).copied().collect();
                per_second(&all, seconds).into_iter().max().unwrap_or_default()
            });
            let most = most.max().unwrap_or_default().max(11) + 1;
            writeln!(f, r#"<h3>{title}</h3><div class="columns">"#)?;
            for (client, usage) in self.names.iter().zip(of_zone) {
                let night = self.night();
                let plot = QuotaPlot { client, usage, seconds, most, night }.draw();
                figure(f, client, &plot)?;
            }
            writeln!(f, "</div>")?;
        }
        writeln!(f, "</section>")
    }

    fn waits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            r#"<section><h2>Waits by lane</h2>
<p>From the call to its first request that the quota admits, one dot a call, on a logarithmic axis. Waves ask for more orders than the quota admits, and polls for more reads, so these have to wait; cancels should not.</p>
<ul class="legend"><li><i class="blue round"></i>one call</li><li><i class="ink bar"></i>median and 99th percentile</li></ul>
<div class="columns">"#
        )?;
        for (client, session) in self.names.iter().zip(self.sessions) {
            figure(f, client, &WaitPlot { client, waits: &Waits::of(session, Until::Admitted) }.draw())?;
        }
        writeln!(f, "</div></section>")
    }

    fn doubts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.scenario.faults.iter().map(|(&number, misfortune)| DoubtRow {
            name: Scenario::intent(number),
            fault: words(misfortune),
            trails: self.sessions.iter().map(|session| Trail::of(session, number)).collect(),
        });
        let plot = DoubtPlot { clients: self.names, rows: rows.collect() };
        writeln!(
            f,
            r#"<section><h2>Every order in doubt</h2>
<p>The same faults struck the same orders of all three clients. Time runs from the order's first request, on a square-root axis.</p>
<ul class="legend"><li><i class="ink round"></i>request</li><li><i class="green diamond"></i>the order exists</li><li><i class="red diamond"></i>it exists once more</li></ul>
<div class="scroll">{}</div></section>"#,
            plot.draw()
        )
    }
}

fn figure(f: &mut fmt::Formatter<'_>, client: &str, plot: &Svg) -> fmt::Result {
    writeln!(f, "<div><h3>{client}</h3>{plot}</div>")
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, scenario, .. } = self;
        writeln!(
            f,
            r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>steadfast demo, seed {seed}</title>
<style>{STYLE}</style></head><body><main>
<h1>Three clients, the same faults</h1>
<p>{} orders through a gateway that fails {} of them in ways that do not say whether the order was placed. Seed {seed}, {:.0} s over loopback TCP.</p>"#,
            scenario.orders.len(),
            scenario.faults.len(),
            self.elapsed.as_secs_f64(),
        )?;
        self.tiles(f)?;
        self.figures(f)?;
        self.doubts(f)?;
        self.quotas(f)?;
        self.waits(f)?;
        writeln!(
            f,
            "<footer><p>steadfast: this project's client with its defaults. checks once: looks into the order list a second after an unclear answer, then sends again. naive: sends again after 1, 2, 4 and 8 seconds. The latter two pace themselves to 10 requests a second in each zone. Every figure is taken from the gateways' own records.</p></footer>\n</main></body></html>"
        )
    }
}
