use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use steadfast_spec::{Paths, Zone};

use crate::{
    enforce::{GatewayClock, Kind},
    gateway::{
        engine::Engine,
        invalid_fault::InvalidFault,
        log::Log,
        plan::{FaultEntry, Plan, read_script},
        settings::{EleventhSession, LoginAnswer, Settings},
        shared::Front,
        spec_reading::{IpRefusal, JsonBody, ListOrder, ListScope, RetryAfter, SpecReading},
    },
    sandbox::Sandbox,
    site::cors::Origin,
};

/// Collects a sandbox's settings; made by [`Sandbox::builder`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SandboxBuilder {
    settings: Settings,
    plan: Plan,
    wall_clock: Option<SystemTime>,
    whitelist: Option<Vec<IpAddr>>,
    quota_clock: Option<GatewayClock>,
    front: Front,
}

impl Sandbox {
    /// Returns a builder with default settings.
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder::default()
    }
}

impl SandboxBuilder {
    /// Sets the seed of all random choices: secrets, fills, probabilistic faults. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the wall-clock time at the start; default the machine's.
    pub fn wall_clock(mut self, start: SystemTime) -> Self {
        self.wall_clock = Some(start);
        self
    }

    /// Takes the shape that a published client of a service with the same paths expects: its paths
    /// ([`Paths::published_client`]), logins with a code that name no client and are answered with the bare token
    /// record, baskets in JSON, symbols without credentials, and records as it reads them.
    pub fn published_client(mut self) -> Self {
        self.settings.paths = Paths::published_client();
        self.settings.published = true;
        self.settings.login_answer = LoginAnswer::Bare;
        self
    }

    /// Sets the paths that the specification does not show; default [`Paths::public`].
    pub fn paths(mut self, paths: Paths) -> Self {
        self.settings.paths = paths;
        self
    }

    /// Sets the reading of everything that the specification leaves open. Replaces earlier settings of single axes.
    pub fn interpretation(mut self, reading: SpecReading) -> Self {
        self.settings.interpretation = reading;
        self
    }

    /// Sets how JSON bodies are refused.
    pub fn json_body(mut self, refusal: JsonBody) -> Self {
        self.settings.interpretation.json_body = refusal;
        self
    }

    /// Sets how addresses that are not on the whitelist are refused.
    pub fn ip_refusal(mut self, refusal: IpRefusal) -> Self {
        self.settings.interpretation.ip_refusal = refusal;
        self
    }

    /// Sets the addresses from which the first user's app may be used; default any.
    pub fn whitelist(mut self, addresses: impl Into<Vec<IpAddr>>) -> Self {
        self.whitelist = Some(addresses.into());
        self
    }

    /// Sets what happens to the eleventh login session.
    pub fn eleventh_session(mut self, choice: EleventhSession) -> Self {
        self.settings.eleventh_session = choice;
        self
    }

    /// Sets which orders the order list holds.
    pub fn list_scope(mut self, scope: ListScope) -> Self {
        self.settings.interpretation.list_scope = scope;
        self
    }

    /// Sets the sort order of the order list.
    pub fn list_order(mut self, order: ListOrder) -> Self {
        self.settings.interpretation.list_order = order;
        self
    }

    /// Sets whether a 429 has a `Retry-After`.
    pub fn retry_after(mut self, choice: RetryAfter) -> Self {
        self.settings.interpretation.retry_after = choice;
        self
    }

    /// Sets the body of a successful individual login.
    pub fn login_answer(mut self, answer: LoginAnswer) -> Self {
        self.settings.login_answer = answer;
        self
    }

    /// Sets how many time steps an authenticator's code may be off; default 1.
    pub fn totp_window(mut self, steps: u8) -> Self {
        self.settings.totp_window = steps.into();
        self
    }

    /// Locks an account after this many failed logins; default never.
    pub fn lock_out_after(mut self, failures: u32) -> Self {
        self.settings.lock_out_after = Some(failures);
        self
    }

    /// Sets how long a client waits for a 504; default 200 ms.
    pub fn gateway_timeout(mut self, wait: Duration) -> Self {
        self.settings.gateway_timeout = wait;
        self
    }

    /// Sets how much later a late order comes into existence; default 2 to 8 s.
    pub fn late_by(mut self, least: Duration, most: Duration) -> Self {
        self.settings.late_by = (least, most);
        self
    }

    /// Sets how old a stale order list is; default 2 s.
    pub fn stale_by(mut self, age: Duration) -> Self {
        self.settings.stale_by = age;
        self
    }

    /// Sets how old an order list from a cache is; default 30 s.
    pub fn cached_for(mut self, age: Duration) -> Self {
        self.settings.cached_for = age;
        self
    }

    /// Sets how a zone counts; default [`Kind::SlidingLog`].
    pub fn enforcer(mut self, zone: Zone, kind: Kind) -> Self {
        self.settings.enforcers.insert(zone, kind);
        self
    }

    /// Sets how much later an admitted request is counted; default at once.
    pub fn accounting_lag(mut self, lag: Duration) -> Self {
        self.settings.accounting_lag = lag;
        self
    }

    /// Sets the maximum delay between a request's arrival and the check by its zones; default at once.
    pub fn accounting_jitter(mut self, jitter: Duration) -> Self {
        self.settings.accounting_jitter = jitter;
        self
    }

    /// Counts an admitted request up to this long after its answer; by default when it arrives.
    ///
    /// Until then the request takes no slot, so a burst may pass, and a later request may be refused because of it.
    pub fn counted_after_answer(mut self, most: Duration) -> Self {
        self.settings.counted_after_answer = Some(most);
        self
    }

    /// Sets the clock by which zones count: its phase against the wall clock, and its drift. Default: the wall clock.
    pub fn quota_clock(mut self, clock: GatewayClock) -> Self {
        self.quota_clock = Some(clock);
        self
    }

    /// Gives `take` a line for each request: when it came, method, path and parameters, status, and the faults that struck
    /// it. Values of parameters that may be secret are masked, and headers are not shown. It is called
    /// before the answer leaves, so it must not wait long.
    pub fn log(mut self, take: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.front.log = Some(Log::new(take));
        self
    }

    /// Lets web pages of this origin call the served gateway (CORS). Without it, browsers let no page read an answer.
    /// The admin API refuses web pages all the same.
    pub fn allow_origin(mut self, origin: Origin) -> Self {
        self.front.origin = Some(origin);
        self
    }

    /// Makes the scrip master this many instruments long; a million are about 80 MB.
    pub fn large_scrip_master(mut self, instruments: u64) -> Self {
        self.settings.large_scrip_master = Some(instruments);
        self
    }

    /// Makes a fault strike a share, from 0 to 1, of the requests that it can strike.
    ///
    /// # Errors
    ///
    /// [`InvalidFault`] for an unknown name or an invalid rate.
    pub fn fault(mut self, name: &str, rate: f64) -> Result<Self, InvalidFault> {
        self.plan.set_rate(name.parse().map_err(InvalidFault::Name)?, rate)?;
        Ok(self)
    }

    /// Adds one exact fault.
    ///
    /// # Errors
    ///
    /// [`InvalidFault`] naming what cannot be injected.
    pub fn script_entry(mut self, entry: FaultEntry) -> Result<Self, InvalidFault> {
        self.plan.add(entry)?;
        Ok(self)
    }

    /// Adds the faults of a TOML script, and sets the axes of its `[interpretation]`.
    ///
    /// # Errors
    ///
    /// [`InvalidFault`] naming what cannot be read or injected.
    pub fn script(mut self, toml: &str) -> Result<Self, InvalidFault> {
        let script = read_script(toml)?;
        for entry in script.fault {
            self.plan.add(entry)?;
        }
        for (axis, value) in &script.interpretation {
            self.settings.interpretation.set(axis, value).map_err(InvalidFault::Axis)?;
        }
        Ok(self)
    }

    /// Builds the sandbox. Its clock starts now; no runtime is needed.
    ///
    /// # Errors
    ///
    /// [`InvalidSandbox`] naming the invalid setting.
    pub fn build(self) -> Result<Sandbox, InvalidSandbox> {
        let (least, most) = self.settings.late_by;
        if least > most {
            return Err(InvalidSandbox::LateBy);
        }
        let start = self.wall_clock.unwrap_or_else(machine_time);
        let epoch = start.duration_since(UNIX_EPOCH).map_err(|_| InvalidSandbox::WallClock)?;
        let clock = self.quota_clock.unwrap_or_else(|| GatewayClock::new().epoch(epoch));
        let settings = Settings { clock, ..self.settings };
        let sandbox = Sandbox::new(Engine::new(settings, self.plan, epoch), self.front);
        if let Some(addresses) = self.whitelist {
            let client_id = sandbox.credentials().client_id;
            sandbox.whitelist(&client_id, Some(addresses));
        }
        Ok(sandbox)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the gateway's clock, which shares nothing with that of the client"
)]
fn machine_time() -> SystemTime {
    SystemTime::now()
}

/// Why a sandbox cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSandbox {
    /// `late_by` has a minimum above its maximum.
    LateBy,
    /// The wall clock is before 1970.
    WallClock,
}

impl std::fmt::Display for InvalidSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LateBy => "late_by's least exceeds its most",
            Self::WallClock => "wall_clock is before 1970",
        })
    }
}

impl std::error::Error for InvalidSandbox {}
