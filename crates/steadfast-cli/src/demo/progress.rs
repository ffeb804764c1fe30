use std::{convert::Infallible, io::IsTerminal, sync::Arc, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::{Instant, MissedTickBehavior};

use super::live::{Glance, Live};
use crate::exit::print_note;

/// Shows the clients' progress: bars on a terminal, a line every few seconds into a pipe, nothing if quiet.
pub(crate) enum Progress {
    Bars(Vec<Bar>, MultiProgress),
    Lines(Vec<Watched>),
    Quiet,
}

/// A client and its name.
pub(crate) type Watched = (&'static str, Arc<Live>);

pub(crate) struct Bar {
    bar: ProgressBar,
    live: Arc<Live>,
}

const BETWEEN_DRAWS: Duration = Duration::from_millis(100);
const BETWEEN_LINES: Duration = Duration::from_secs(5);

impl Progress {
    pub(crate) fn new(clients: Vec<Watched>, orders: usize, quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines(clients);
        }
        let all = MultiProgress::new();
        let bars = clients.into_iter().map(|(name, live)| {
            let bar = all.add(ProgressBar::new(orders as u64));
            bar.set_style(style());
            bar.set_prefix(name);
            Bar { bar, live }
        });
        Self::Bars(bars.collect(), all)
    }

    /// Shows progress until it is dropped.
    pub(crate) async fn show(&self) -> Infallible {
        let between = match self {
            Self::Bars(..) => BETWEEN_DRAWS,
            Self::Lines(_) => BETWEEN_LINES,
            Self::Quiet => return std::future::pending().await,
        };
        let start = Instant::now();
        let mut ticks = tokio::time::interval_at(start + between, between);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.draw(start.elapsed());
        }
    }

    fn draw(&self, elapsed: Duration) {
        match self {
            Self::Bars(bars, _) => {
                for Bar { bar, live } in bars {
                    let glance = live.glance();
                    bar.set_position((glance.placed + glance.otherwise) as u64);
                    bar.set_message(text(glance));
                }
            }
            Self::Lines(clients) => {
                let clients: Vec<String> =
                    clients.iter().map(|(name, live)| format!("{name}: {}", text(live.glance()))).collect();
                print_note(format_args!("{:>3} s  {}", elapsed.as_secs(), clients.join("  ")));
            }
            Self::Quiet => {}
        }
    }

    /// Removes the bars.
    pub(crate) fn end(&self) {
        if let Self::Bars(bars, all) = self {
            for Bar { bar, .. } in bars {
                bar.finish_and_clear();
            }
            // A closed terminal needs no clearing.
            let _ = all.clear();
        }
    }
}

fn style() -> ProgressStyle {
    // An invalid template leaves the default one, which shows the same figures.
    ProgressStyle::with_template("{prefix:>12}  {bar:30.cyan/dim}  {pos:>4}/{len}  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn text(glance: Glance) -> String {
    let Glance { placed, otherwise, in_doubt, .. } = glance;
    let mut text = format!("{placed} placed");
    if in_doubt > 0 {
        text += &format!(", {in_doubt} in doubt");
    }
    if otherwise > 0 {
        text += &format!(", {otherwise} without an answer");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_zero_is_not_said() {
        assert_eq!(text(Glance { placed: 3, ..Glance::default() }), "3 placed");
        let all = Glance { asked: 9, placed: 3, otherwise: 1, in_doubt: 2 };
        assert_eq!(text(all), "3 placed, 2 in doubt, 1 without an answer");
    }
}
