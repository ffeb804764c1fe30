use steadfast_auth::TokenSource;
use steadfast_call::{Lane, Route, ext::Place};
use steadfast_dedup::OrderTracker;
use steadfast_limit::ZoneLimiter;
use steadfast_retry::PEEK_LIMIT;
use steadfast_spec::Endpoint;

use super::Stack;
use crate::description::{Description, LayerDescription, spelled};

impl Stack {
    /// Returns the layers with the settings that take effect.
    #[must_use]
    pub fn describe(&self) -> Description {
        let layers = Place::ALL.into_iter().map(|place| self.layer(place));
        let transport = LayerDescription::new("Transport").with("sends over", "the caller's own transport");
        Description { base: self.base.to_string(), layers: layers.chain([transport]).collect() }
    }

    /// Returns the tracker, which holds what is known of orders.
    #[must_use]
    pub fn known_orders(&self) -> &OrderTracker {
        &self.settings.tracker
    }

    /// Returns the rate limits.
    #[must_use]
    pub fn rate_limits(&self) -> &ZoneLimiter {
        &self.settings.limiter
    }

    /// Returns the token source.
    #[must_use]
    pub fn tokens(&self) -> &TokenSource {
        &self.tokens
    }

    fn layer(&self, place: Place) -> LayerDescription {
        let layer = LayerDescription::new(place.as_str());
        match place {
            Place::Deadline => self.settings.deadline.described(),
            Place::Route => self.describe_routes(layer),
            Place::Dedup => self
                .settings
                .tracker
                .settings()
                .effective()
                .into_iter()
                .fold(layer, |layer, (name, value)| layer.with(name, value)),
            Place::Retry => self.describe_retry(layer),
            Place::Refresh => match self.tokens.renewal() {
                Some(renewal) => layer.with("renewal", renewal),
                None => layer.with("renewal", "none: nobody renews the token"),
            },
            Place::RateLimit => self.describe_limits(layer),
            Place::AuthHeader => {
                layer.with("only to", self.base.uri().authority().map_or("", |a| a.as_str()))
            }
            Place::SendGuard => {
                let journal = if self.settings.tracker.is_journaled() { "kept" } else { "none" };
                layer.with("journal", journal)
            }
            Place::Classify => layer.with("looks into", format!("{PEEK_LIMIT} bytes of a body")),
            Place::AttemptTimeout => {
                let (send, idle) = self.settings.attempt_timeout.limits();
                layer.with("one send", spelled(Some(send))).with("a body's pause", spelled(idle))
            }
            _ => layer,
        }
    }

    fn describe_routes(&self, layer: LayerDescription) -> LayerDescription {
        let json = if self.settings.pass_json { "passed on" } else { "refused" };
        let layer = layer.with("JSON bodies", json);
        let layer = match self.settings.account.as_str() {
            "" => layer,
            account => layer.with("account", account),
        };
        let (mut layer, mut without) = (layer, Vec::new());
        for endpoint in Endpoint::all() {
            let mut paths = self.settings.routes.of_endpoint(endpoint).peekable();
            // Those that only a published client shows are not missed.
            if paths.peek().is_none() && Endpoint::SPECIFIED.contains(&endpoint) {
                without.push(endpoint.as_str());
            }
            for (method, path, route) in paths {
                layer = layer.with(endpoint.as_str(), format!("{method} {path} ({})", zones_of(route)));
            }
        }
        for (method, path, route) in
            self.settings.routes.iter().filter(|(.., route)| route.endpoint.is_none())
        {
            layer = layer.with(format!("{method} {path}"), zones_of(route));
        }
        let without = if without.is_empty() { "none".to_owned() } else { without.join(", ") };
        layer.with("without a path", without)
    }

    fn describe_retry(&self, layer: LayerDescription) -> LayerDescription {
        let rules = self.settings.retry.rules();
        let delays: Vec<_> = rules.schedule.delays().iter().map(|delay| format!("{delay:?}")).collect();
        let delays = if delays.is_empty() { "never".to_owned() } else { delays.join(", ") };
        let layer = layer
            .with("repeats after", delays)
            .with("longer by", format!("up to {} %", rules.jitter.most()))
            .with("Retry-After", format!("up to {:?}", rules.retry_after_cap))
            .with("first 503", format!("{:?} at least", rules.unavailable_delay));
        let layer = match &rules.persistent_bad_gateway {
            Some(range) => layer.with("further 502", format!("{:?} to {:?}", range.start(), range.end())),
            None => layer,
        };
        if self.settings.retry.has_budget() { layer.with("budget", "a share of all requests") } else { layer }
    }

    fn describe_limits(&self, layer: LayerDescription) -> LayerDescription {
        let mut layer = layer;
        for zone in self.settings.limiter.settings() {
            layer = layer.with(zone.zone.as_str(), zone);
        }
        let bounds = self.settings.limiter.queue_bounds();
        let bounds = Lane::ALL.into_iter().zip(bounds).map(|(lane, bound)| format!("{lane} {bound}"));
        let layer = layer.with("waiting at most", bounds.collect::<Vec<_>>().join(", "));
        let layer = match self.settings.local_address {
            Some(address) => layer.with("counted from", address),
            None => layer,
        };
        match &self.settings.api_key_name {
            Some(name) => layer.with("api key", name.as_str()),
            None => layer,
        }
    }
}

fn zones_of(route: &Route) -> String {
    route.zones.iter().map(|zone| zone.as_str()).collect::<Vec<_>>().join(", ")
}
