use std::{
    borrow::Cow,
    time::{Duration, UNIX_EPOCH},
};

use steadfast_spec::{Form, Scope, Zone};

use super::Engine;
use crate::{
    faults::{Fault, Stage},
    gateway::{
        passage::Passage,
        quota::{Key, OverQuota, Quotas},
        spec_reading::RetryAfter,
    },
    wire::page::{Hint, LAST_DATE, Page, refusal},
};

/// No API key is longer.
const LONGEST_KEY: usize = 64;
/// An absurd `Retry-After`: eleven days.
const ABSURD: &str = "999999";
/// A `Retry-After` that is neither a number nor a date.
const GARBAGE: &str = "soon";

/// The count of requests against their quotas.
impl Engine {
    /// §8: admitted by all zones, or counted in none.
    pub(super) fn count(&mut self, passage: &mut Passage<'_>, form: Option<&Form>) -> Result<(), Page> {
        let jitter = self.settings.accounting_jitter.mul_f64(if self.settings.accounting_jitter.is_zero() {
            0.0
        } else {
            self.draw.fraction("accounting-jitter", &self.record.requests.to_string())
        });
        passage.accounted = passage.now.saturating_add(jitter);
        let keys: Vec<Key> = passage
            .zones
            .iter()
            .filter_map(|&zone| self.holder(zone, passage, form).map(|holder| Key { zone, holder }))
            .collect();
        if passage.now < self.storm_until {
            return Err(refusal::too_many_requests());
        }
        let strike = self.strike(Stage::Quota, passage);
        match strike.map(|strike| strike.fault) {
            Some(Fault::QuotaForeign) => {
                for _ in 0..self.quota_of_a_second(passage) {
                    self.quotas.count_foreign(&keys, passage.accounted);
                }
            }
            Some(Fault::QuotaHalved) => self.quotas.halve(),
            Some(Fault::QuotaLowered) => self.quotas.lower(),
            Some(Fault::QuotaStorm) => return Err(refusal::too_many_requests()),
            Some(Fault::QuotaStormRetryAfter) => {
                return Err(come_back_after("2".into()));
            }
            Some(Fault::QuotaStormAbsurd) => {
                return Err(come_back_after(ABSURD.into()));
            }
            Some(Fault::QuotaStormRetryAfterZero) => return Err(come_back_after("0".into())),
            Some(Fault::QuotaStormRetryAfter60) => return Err(come_back_after("60".into())),
            Some(Fault::QuotaStormRetryAfterDate) => {
                let date = UNIX_EPOCH + self.wall(passage.now + Duration::from_secs(2)).min(LAST_DATE);
                return Err(come_back_after(httpdate::fmt_http_date(date).into()));
            }
            Some(Fault::QuotaStormRetryAfterGarbage) => return Err(come_back_after(GARBAGE.into())),
            Some(Fault::QuotaStormMinute) => {
                self.storm_until = passage.now.saturating_add(Duration::from_secs(60));
                return Err(refusal::too_many_requests());
            }
            _ => {}
        }
        self.quotas.admit(&keys, passage.accounted).map_err(|over| {
            passage.refused_by = Some(over.zone);
            match self.retry_after(over) {
                Some(wait) => come_back_after(wait),
                None => refusal::too_many_requests(),
            }
        })?;
        if self.settings.counted_after_answer.is_some() {
            passage.uncounted = keys;
        }
        Ok(())
    }

    fn holder(&self, zone: Zone, passage: &Passage<'_>, form: Option<&Form>) -> Option<String> {
        match Quotas::scope(zone) {
            Scope::ClientIp => Some(passage.incoming.peer.to_string()),
            Scope::ApiKey => match passage.caller {
                Some(caller) => Some(self.directory.user(caller.user).app.api_key.clone()),
                None => {
                    let key = form.unwrap_or(&passage.query).get("client_id")?;
                    // A text that cannot be a key is counted too, but shortened to save memory.
                    Some(key.chars().take(LONGEST_KEY).collect())
                }
            },
            _ => passage.caller.and_then(|caller| caller.session).map(|session| session.number.to_string()),
        }
    }

    fn quota_of_a_second(&self, passage: &Passage<'_>) -> u32 {
        let zones = steadfast_spec::zones();
        let windows =
            zones.iter().filter(|spec| passage.zones.contains(&spec.zone)).flat_map(|spec| &spec.windows);
        windows.map(|window| window.limit().get()).min().unwrap_or_default()
    }

    fn retry_after(&self, over: OverQuota) -> Option<Cow<'static, str>> {
        match self.settings.interpretation.retry_after {
            RetryAfter::Absent => None,
            RetryAfter::Seconds => {
                let seconds = over.retry_after.as_secs() + u64::from(over.retry_after.subsec_nanos() > 0);
                Some(seconds.to_string().into())
            }
            RetryAfter::Absurd => Some(ABSURD.into()),
            RetryAfter::Garbage => Some(GARBAGE.into()),
        }
    }
}

fn come_back_after(wait: Cow<'static, str>) -> Page {
    Page { hint: Some(Hint::RetryAfter(wait)), ..refusal::too_many_requests() }
}
