use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use steadfast_spec::Endpoint;

use crate::{
    faults::{Fault, Place, Stage},
    gateway::{draw::Draw, invalid_fault::InvalidFault},
};

/// Which faults strike which requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    rates: Vec<(Fault, f64)>,
    scripted: Vec<Scripted>,
}

/// One entry of a script: exactly which requests a fault strikes. A script takes precedence over rates.
#[derive(Clone, Debug)]
struct Scripted {
    fault: Fault,
    intent: Option<String>,
    attempt: Option<u32>,
    endpoint: Option<String>,
    skip: u32,
    times: Option<u32>,
    late_by: Option<Duration>,
    answer_after: Option<Duration>,
    at_byte: Option<u64>,
}

impl Scripted {
    fn entry(&self) -> FaultEntry {
        let ms = |time: Option<Duration>| time.and_then(|time| u64::try_from(time.as_millis()).ok());
        FaultEntry {
            name: self.fault.to_string(),
            rate: None,
            intent: self.intent.clone(),
            attempt: self.attempt,
            endpoint: self.endpoint.clone(),
            nth: (self.skip > 0).then(|| self.skip.saturating_add(1)),
            times: self.times,
            late_by_ms: ms(self.late_by),
            answer_after_ms: ms(self.answer_after),
            at_byte: self.at_byte,
        }
    }
}

/// A fault that strikes, with the details of its script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strike {
    pub(crate) fault: Fault,
    pub(crate) late_by: Option<Duration>,
    pub(crate) answer_after: Option<Duration>,
    pub(crate) at_byte: Option<u64>,
}

/// The facts about a request on which a plan decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) intent: Option<&'a str>,
    /// The number of the send within its intent, from one; one for a request without an intent.
    pub(crate) attempt: u32,
    /// The request's name in draws: intent and attempt, or its number of arrival without an intent.
    pub(crate) key: &'a str,
}

impl Plan {
    pub(crate) fn is_empty(&self) -> bool {
        self.rates.is_empty() && self.scripted.is_empty()
    }

    /// Returns a fault that strikes connections, if one is planned.
    pub(crate) fn connection_fault(&self) -> Option<Fault> {
        let rates = self.rates.iter().map(|(fault, _)| *fault);
        let mut planned = rates.chain(self.scripted.iter().map(|entry| entry.fault));
        planned.find(|fault| fault.place() == Place::Connection)
    }

    /// Returns what is planned: rates, and of exact entries what is left to strike.
    pub(crate) fn entries(&self) -> Vec<FaultEntry> {
        let rates = self.rates.iter().map(|(fault, rate)| FaultEntry {
            name: fault.to_string(),
            rate: Some(*rate),
            ..FaultEntry::default()
        });
        let left = self.scripted.iter().filter(|entry| entry.times != Some(0));
        rates.chain(left.map(Scripted::entry)).collect()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Sets the rate at which `fault` strikes; zero removes it.
    pub(crate) fn set_rate(&mut self, fault: Fault, rate: f64) -> Result<(), InvalidFault> {
        if !(0.0..=1.0).contains(&rate) {
            return Err(InvalidFault::Rate(fault));
        }
        self.rates.retain(|(known, _)| *known != fault);
        if rate > 0.0 {
            self.rates.push((fault, rate));
        }
        Ok(())
    }

    /// Adds one entry of a script, or one call of the admin API.
    pub(crate) fn add(&mut self, entry: FaultEntry) -> Result<(), InvalidFault> {
        let fault: Fault = entry.name.parse().map_err(InvalidFault::Name)?;
        if let Some(rate) = entry.rate {
            return match entry.exact_field() {
                Some(field) => Err(InvalidFault::BesideRate(fault, field)),
                None => self.set_rate(fault, rate),
            };
        }
        if entry.nth == Some(0) {
            return Err(InvalidFault::Nth(fault));
        }
        if entry.attempt == Some(0) {
            return Err(InvalidFault::Attempt(fault));
        }
        if entry.late_by_ms.is_some() && !fault.as_str().ends_with("-late") {
            return Err(InvalidFault::NotLate(fault));
        }
        let at_bytes = [Fault::TransportResetAtByte, Fault::ConnectionResetMidRequest];
        if entry.at_byte.is_some() && !at_bytes.contains(&fault) {
            return Err(InvalidFault::NoByte(fault));
        }
        if let Some(endpoint) = &entry.endpoint
            && !Endpoint::all().any(|known| known.as_str() == endpoint)
        {
            return Err(InvalidFault::Endpoint(fault));
        }
        let exact = entry.nth.is_some() || (entry.intent.is_some() && entry.attempt.is_some());
        self.scripted.push(Scripted {
            fault,
            intent: entry.intent,
            attempt: entry.attempt,
            endpoint: entry.endpoint,
            skip: entry.nth.map_or(0, |nth| nth - 1),
            times: entry.times.or(exact.then_some(1)),
            late_by: entry.late_by_ms.map(Duration::from_millis),
            answer_after: entry.answer_after_ms.map(Duration::from_millis),
            at_byte: entry.at_byte,
        });
        Ok(())
    }

    /// Returns the fault that strikes a request at one stage.
    pub(crate) fn strike(&mut self, stage: Stage, target: Target<'_>, draw: Draw) -> Option<Strike> {
        self.scripted(stage, target).or_else(|| self.drawn(stage, target, draw))
    }

    fn scripted(&mut self, stage: Stage, target: Target<'_>) -> Option<Strike> {
        let selected = |entry: &Scripted| {
            entry.fault.stage() == stage
                && entry.times != Some(0)
                && entry.intent.as_deref().is_none_or(|intent| target.intent == Some(intent))
                && entry.attempt.is_none_or(|attempt| target.attempt == attempt)
                && entry
                    .endpoint
                    .as_deref()
                    .is_none_or(|name| target.endpoint.map(Endpoint::as_str) == Some(name))
        };
        let entry = self.scripted.iter_mut().find_map(|entry| {
            if !selected(entry) {
                return None;
            }
            if entry.skip > 0 {
                entry.skip -= 1;
                return None;
            }
            Some(entry)
        })?;
        entry.times = entry.times.map(|times| times - 1);
        let Scripted { fault, late_by, answer_after, at_byte, .. } = *entry;
        Some(Strike { fault, late_by, answer_after, at_byte })
    }

    /// The rates of a stage share one draw, so that at most one of them strikes and each keeps its share.
    fn drawn(&self, stage: Stage, target: Target<'_>, draw: Draw) -> Option<Strike> {
        let mut rates = self.rates.iter().filter(|(fault, _)| fault.stage() == stage).peekable();
        rates.peek()?;
        let mut left = draw.fraction(stage.label(), target.key);
        let (fault, _) = rates.find(|(_, rate)| {
            left -= rate;
            left < 0.0
        })?;
        Some(Strike { fault: *fault, late_by: None, answer_after: None, at_byte: None })
    }
}

/// One fault of a script file or of the admin API's `POST /faults`.
///
/// With `rate`, the fault strikes that share of the requests it can strike. Without, it strikes exactly the
/// requests that `endpoint`, `intent`, `attempt` and `nth` select: the `nth` of them, and `times` in all from
/// there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FaultEntry {
    /// The fault's name.
    pub name: String,
    /// The share of requests, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Only orders sent for this intent (header `x-test-intent`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Only this send of the intent, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Only requests to this endpoint, by its name: `place-order`, `orders`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The first of the selected requests to strike, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// How often it strikes; once with `nth` or with an intent's attempt, otherwise always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// For late placements: how much later the order comes into existence, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_by_ms: Option<u64>,
    /// How long the client waits for the answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_after_ms: Option<u64>,
    /// For a reset in the middle: after how many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_byte: Option<u64>,
}

impl FaultEntry {
    /// Returns a field that is meaningful for exact requests only, if one is set.
    fn exact_field(&self) -> Option<&'static str> {
        let given = [
            ("intent", self.intent.is_some()),
            ("attempt", self.attempt.is_some()),
            ("endpoint", self.endpoint.is_some()),
            ("nth", self.nth.is_some()),
            ("times", self.times.is_some()),
            ("late_by_ms", self.late_by_ms.is_some()),
            ("answer_after_ms", self.answer_after_ms.is_some()),
            ("at_byte", self.at_byte.is_some()),
        ];
        given.into_iter().find_map(|(field, given)| given.then_some(field))
    }
}

/// A script: `[[fault]]` tables of [`FaultEntry`], and an `[interpretation]` of axes and their values.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    #[serde(default)]
    pub(crate) fault: Vec<FaultEntry>,
    #[serde(default)]
    pub(crate) interpretation: BTreeMap<String, String>,
}

/// Reads a script file.
pub(crate) fn read_script(text: &str) -> Result<Script, InvalidFault> {
    toml::from_str(text).map_err(|error| InvalidFault::Script(error.message().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target<'a>(intent: Option<&'a str>, attempt: u32, key: &'a str) -> Target<'a> {
        Target { endpoint: Some(Endpoint::PlaceOrder), intent, attempt, key }
    }

    fn plan(script: &str) -> Plan {
        let mut plan = Plan::default();
        for entry in read_script(script).unwrap().fault {
            plan.add(entry).unwrap();
        }
        plan
    }

    #[test]
    fn a_scripted_fault_strikes_exactly_the_request_that_it_names() {
        let mut plan =
            plan("[[fault]]\nname = 'placement.504-late'\nintent = 'b'\nattempt = 2\nlate_by_ms = 5000");
        let draw = Draw::new(0);
        assert!(plan.strike(Stage::Placement, target(Some("a"), 2, "a/2"), draw).is_none());
        assert!(plan.strike(Stage::Placement, target(Some("b"), 1, "b/1"), draw).is_none());
        let strike = plan.strike(Stage::Placement, target(Some("b"), 2, "b/2"), draw).unwrap();
        assert_eq!((strike.fault, strike.late_by), (Fault::Placement504Late, Some(Duration::from_secs(5))));
        assert!(
            plan.strike(Stage::Placement, target(Some("b"), 2, "b/2"), draw).is_none(),
            "it strikes once"
        );
    }

    #[test]
    fn nth_and_times_select_a_run_of_requests() {
        let mut plan = plan("[[fault]]\nname = 'quota.storm'\nnth = 3\ntimes = 2");
        let struck: Vec<bool> =
            (0..6).map(|_| plan.strike(Stage::Quota, target(None, 1, "x"), Draw::new(0)).is_some()).collect();
        assert_eq!(struck, [false, false, true, true, false, false]);
    }

    #[test]
    fn rates_of_one_stage_add_up_and_hit_the_same_requests_for_every_client() {
        let mut plan = Plan::default();
        plan.set_rate(Fault::Placement504Applied, 0.2).unwrap();
        plan.set_rate(Fault::Placement500NotApplied, 0.1).unwrap();
        let struck = |plan: &mut Plan| -> Vec<Option<Fault>> {
            (0..2_000)
                .map(|i| {
                    plan.strike(Stage::Placement, target(None, 1, &i.to_string()), Draw::new(3))
                        .map(|s| s.fault)
                })
                .collect()
        };
        let first = struck(&mut plan);
        let share = |fault| first.iter().filter(|f| **f == Some(fault)).count();
        assert!((330..470).contains(&share(Fault::Placement504Applied)));
        assert!((140..260).contains(&share(Fault::Placement500NotApplied)));
        assert_eq!(first, struck(&mut plan));
    }

    #[test]
    fn what_cannot_be_injected_is_named() {
        let mut plan = Plan::default();
        let entry = |text: &str| read_script(text).map(|mut script| script.fault.remove(0));
        for (text, message) in [
            (
                "[[fault]]\nname = 'x.y'",
                "no fault is named \"x.y\"; the groups are placement, list, auth, quota, connection, answer, transport, time",
            ),
            ("[[fault]]\nname = 'list.empty'\nrate = 1.5", "rate of list.empty is not between 0 and 1"),
            ("[[fault]]\nname = 'list.empty'\nrate = nan", "rate of list.empty is not between 0 and 1"),
            ("[[fault]]\nname = 'list.empty'\nnth = 0", "nth of list.empty counts from 1"),
            ("[[fault]]\nname = 'list.empty'\nendpoint = 'x'", "endpoint of list.empty is unknown"),
        ] {
            let error = entry(text).and_then(|entry| plan.add(entry)).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let error = entry("[[fault]]\nname = 'list.empty'\nnht = 1").unwrap_err().to_string();
        assert!(error.contains("nht"), "{error}");
    }
}
