use steadfast_call::Lane;

use crate::{
    rule::{Micros, Rule},
    windows::Ask,
};

/// One of the store's scripts, behind the piece that tells the time.
///
/// Its text names the run of the server, so another run does not know it: a restart and a promoted replica answer
/// `NOSCRIPT`, and cannot pass for the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    source: &'static str,
}

/// Tells the time of a key.
const CLOCK: &str = include_str!("script/clock.lua");

/// The lines of it that read the store's clock.
const READS_CLOCK: &str = "local clock = redis.call('TIME')\nlocal time = clock[1] * 1000000 + clock[2]\n";

impl Script {
    /// Decides about requests of one caller.
    pub const ACQUIRE: Self = Self { source: include_str!("script/acquire.lua") };

    /// Records an answer.
    pub const SETTLE: Self = Self { source: include_str!("script/settle.lua") };

    /// Lends a slot.
    pub const LEND: Self = Self { source: include_str!("script/lend.lua") };

    /// Reads the key's clock, and no more.
    pub const READ: Self = Self { source: include_str!("script/read.lua") };

    /// Returns the text for one run of a server.
    #[must_use]
    pub fn text(self, run: &str) -> String {
        format!("{}{}", CLOCK.replace("{run_id}", run), self.source)
    }

    /// Returns the same with the time as a second key, for tests of its decisions.
    #[doc(hidden)]
    #[must_use]
    pub fn text_with_time(self, run: &str) -> String {
        self.text(run).replace(READS_CLOCK, "local time = tonumber(KEYS[2])\n")
    }
}

/// For [`StoreClock::latest`](crate::StoreClock::latest) where it is not known: more than any instant, and exact as a double.
const UNKNOWN: Micros = 1 << 52;

/// Returns the arguments of [`Script::ACQUIRE`] for requests that differ in their ids alone. The key's clock counts up to
/// `latest`.
#[doc(hidden)]
#[must_use]
pub fn acquire_arguments(rule: &Rule, asks: &[Ask<'_>], latest: Option<Micros>) -> Vec<String> {
    let (lane, first_use) = asks.first().map_or((Lane::Bulk, false), |ask| (ask.lane, ask.first_use));
    let ids: Vec<_> = asks.iter().map(|ask| ask.id).collect();
    let flags = [first_use, lane == Lane::Critical, rule.interpolates()].map(Micros::from);
    let times = [
        rule.on_its_way(),
        rule.given_up_earlier(lane),
        rule.full_after_loss(),
        rule.kept(),
        rule.lent_from(0) - rule.on_its_way(),
    ];
    let windows = rule.windows().iter().flat_map(|window| {
        let [most, most_while_full, limit] =
            [window.most(lane, false), window.most(lane, true), window.limit()].map(Micros::from);
        [most, most_while_full, limit, window.period]
    });
    let numbers = [latest.unwrap_or(UNKNOWN)].into_iter().chain(flags).chain(times).chain(windows);
    [ids.join(" ")].into_iter().chain(numbers.map(|number| number.to_string())).collect()
}

/// Returns the arguments of [`Script::READ`].
#[doc(hidden)]
#[must_use]
pub fn read_arguments(latest: Option<Micros>) -> Vec<String> {
    vec![String::new(), latest.unwrap_or(UNKNOWN).to_string()]
}

/// Returns the arguments of [`Script::SETTLE`].
#[doc(hidden)]
#[must_use]
pub fn settle_arguments(rule: &Rule, id: &str, latest: Option<Micros>) -> Vec<String> {
    vec![id.to_owned(), latest.unwrap_or(UNKNOWN).to_string(), rule.settle().to_string()]
}

/// Returns the arguments of [`Script::LEND`].
#[doc(hidden)]
#[must_use]
pub fn lend_arguments(rule: &Rule, id: &str, life: Micros, latest: Option<Micros>) -> Vec<String> {
    let numbers = [latest.unwrap_or(UNKNOWN), life, rule.lent_from(0), rule.most_lent().into()];
    [id.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_are_short_name_their_run_and_read_the_clock_once() {
        for script in [Script::ACQUIRE, Script::SETTLE, Script::LEND, Script::READ] {
            let lines =
                |text: &str| text.lines().filter(|line| !line.is_empty() && !line.starts_with("--")).count();
            assert!(lines(CLOCK) + lines(script.source) <= 80 && lines(script.source) <= 60);
            let text = script.text("8f3a");
            assert!(text.contains("'8f3a'"), "{text}");
            assert!(text.contains("redis.call('TIME')"), "{text}");
            assert!(!script.text_with_time("8f3a").contains("TIME'"), "{text}");
        }
    }

    #[test]
    fn no_number_goes_through_a_conversion_that_rounds() {
        for script in [Script::ACQUIRE, Script::SETTLE, Script::LEND, Script::READ] {
            assert!(
                !script.source.contains("tostring") && !CLOCK.contains("tostring") && !CLOCK.contains(" .. ")
            );
            // The one string that is joined is the caller's own.
            assert!(script.source.matches(" .. ").count() <= 1);
        }
    }
}
