//! The drawn cases: a script of replies, and the surroundings of the policy.

use std::time::Duration;

use proptest::prelude::*;
use steadfast_spec::{Endpoint, msg};

use crate::support::{PLACED, Reply, error};

/// How one send ends.
#[derive(Clone, Debug)]
pub(super) enum Line {
    Says(Reply),
    /// Asks for a pause until a time of day, with or without a `Date`.
    Until {
        status: u16,
        until: Clock,
        date: Option<Clock>,
    },
}

/// A time of day in seconds, written in one of HTTP's three forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) second: u64,
    form: u8,
}

impl Clock {
    fn written(self) -> String {
        let time = format!("{:02}:{:02}:{:02}", self.second / 3_600, self.second / 60 % 60, self.second % 60);
        match self.form {
            0 => format!("Sat, 21 Nov 2026 {time} GMT"),
            1 => format!("Saturday, 21-Nov-26 {time} GMT"),
            _ => format!("Sat Nov 21 {time} 2026"),
        }
    }
}

impl Line {
    pub(super) fn reply(&self) -> Reply {
        match self {
            Self::Says(reply) => reply.clone(),
            Self::Until { status, until, date } => {
                Reply::Dated(*status, until.written(), date.map(Clock::written))
            }
        }
    }
}

/// A login that brings the one new token of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login {
    pub(super) takes: Duration,
    pub(super) works: bool,
}

/// Limits that close after a number of sends, as after a 429, and open again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) after: usize,
    pub(super) until: Duration,
}

impl Closed {
    /// Returns when a request after `sends` sends is admitted, if not at once.
    pub(super) fn opens(self, sends: usize, now: Duration) -> Option<Duration> {
        (sends >= self.after && now < self.until).then_some(self.until)
    }
}

/// One call and its surroundings. Settings that are not drawn have their defaults.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) endpoint: Endpoint,
    /// How the sends end. The last line repeats.
    pub(super) script: Vec<Line>,
    pub(super) seed: u64,
    /// True for up to 10 %, false for none.
    pub(super) jitter: bool,
    /// True for 30 to 60 s from the second 502 in a row on.
    pub(super) persistent_502: bool,
    /// The maximum number of repeats.
    pub(super) budget: Option<u32>,
    pub(super) deadline: Option<Duration>,
    pub(super) send_by: Option<Duration>,
    /// When the limits admit nothing.
    pub(super) closed: Option<Closed>,
    /// True if the policy can predict the limits.
    pub(super) predicts: bool,
    /// The login for a call whose token has worked before.
    pub(super) login: Option<Login>,
}

impl Case {
    /// Makes a call with only a script and exact delays.
    pub(super) fn exact(endpoint: Endpoint, script: Vec<Line>) -> Self {
        Self {
            endpoint,
            script,
            seed: 0,
            jitter: false,
            persistent_502: false,
            budget: None,
            deadline: None,
            send_by: None,
            closed: None,
            predicts: false,
            login: None,
        }
    }
}

/// Draws mostly statuses that are repeated, above all 502s, because two in a row have a rule of their own.
fn repeated() -> impl Strategy<Value = u16> {
    prop::sample::select(vec![429, 500, 502, 502, 502, 503, 504])
}

pub(super) fn line() -> impl Strategy<Value = Line> {
    let statuses =
        vec![200, 202, 302, 400, 401, 403, 404, 405, 408, 409, 415, 425, 429, 500, 502, 503, 504, 599];
    let asked = prop_oneof![
        (0..100u64).prop_map(|n| n.to_string()),
        Just("later".to_owned()),
        Just("-5".to_owned()),
    ];
    let clock = |seconds| (seconds, 0..3u8).prop_map(|(second, form)| Clock { second, form });
    prop_oneof![
        4 => repeated().prop_map(Reply::Status).prop_map(Line::Says),
        2 => prop::sample::select(statuses).prop_map(Reply::Status).prop_map(Line::Says),
        2 => (repeated(), asked).prop_map(|(s, v)| Line::Says(Reply::Header(s, "retry-after", v))),
        2 => (repeated(), clock(43_100..43_300u64), prop::option::weighted(0.9, clock(43_190..43_210u64)))
            .prop_map(|(status, until, date)| Line::Until { status, until, date }),
        1 => prop::sample::select(vec![msg::INTERNAL_ERROR, msg::BAD_REQUEST, msg::INPUT_VALIDATION, "?"])
            .prop_map(|text| Line::Says(Reply::Body(400, error(text)))),
        1 => Just(Line::Says(Reply::Status(401))),
        1 => Just(Line::Says(Reply::Body(200, PLACED.into()))),
        2 => Just(Line::Says(Reply::NeverLeft)),
        1 => Just(Line::Says(Reply::Lost)),
        1 => Just(Line::Says(Reply::Plain)),
        1 => Just(Line::Says(Reply::Refused)),
    ]
}

fn within(seconds: u64) -> impl Strategy<Value = Duration> {
    (0..seconds * 1_000).prop_map(Duration::from_millis)
}

fn login() -> impl Strategy<Value = Login> {
    let script = (within(20), prop::bool::weighted(0.8));
    script.prop_map(|(takes, works)| Login { takes, works })
}

fn closed() -> impl Strategy<Value = Closed> {
    (0..4usize, within(60)).prop_map(|(after, until)| Closed { after, until })
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let call = (
        prop::sample::select(Endpoint::SPECIFIED.to_vec()),
        prop::collection::vec(line(), 1..7),
        any::<u64>(),
    );
    let policy = (any::<bool>(), any::<bool>(), prop::option::weighted(0.3, 0..5u32));
    let clocks = (prop::option::of(within(60)), prop::option::weighted(0.3, within(40)));
    let around = (
        prop::option::weighted(0.4, closed()),
        prop::bool::weighted(0.7),
        prop::option::weighted(0.3, login()),
    );
    (call, policy, clocks, around).prop_map(
        |(
            (endpoint, script, seed),
            (jitter, persistent_502, budget),
            (deadline, send_by),
            (closed, predicts, login),
        )| Case {
            seed,
            jitter,
            persistent_502,
            budget,
            deadline,
            send_by,
            closed,
            predicts,
            login,
            ..Case::exact(endpoint, script)
        },
    )
}
