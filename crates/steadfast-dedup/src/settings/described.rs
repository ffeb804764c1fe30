use crate::settings::{
    Settings,
    policy::{AccountMode, Baseline, KeyPolicy, ListShows, OrdersScope, ResendPolicy, VerifyOn},
};

impl Settings {
    /// Returns the effective value of every setting that decides the fate of an order, by name.
    #[must_use]
    pub fn effective(&self) -> Vec<(&'static str, String)> {
        let resends = match self.resend {
            ResendPolicy::Never => "none".to_owned(),
            ResendPolicy::AtMost(most) => format!(
                "at most {most}; until {:?} after the first send, market orders {:?}",
                self.max_resend_age, self.max_resend_age_market
            ),
        };
        let mode = match self.account_mode {
            AccountMode::Exclusive => "nobody else trades on the account",
            AccountMode::Shared => "others trade on the account too",
        };
        let scope = match self.orders_scope {
            OrdersScope::Session => "the session's orders",
            OrdersScope::Account => "the account's orders",
        };
        let shown = match self.list_shows {
            ListShows::Everything => "orders of every status",
            ListShows::SomeStatuses => "orders of some statuses only",
        };
        let verified = match self.verify_on {
            VerifyOn::Default => "every unknown outcome",
            VerifyOn::SpecMinimal => "504 only",
        };
        let alike = match self.key_policy {
            KeyPolicy::Concurrent => "at the same time",
            KeyPolicy::Serialize => "one after the other",
        };
        let list = match self.baseline {
            Baseline::Cold => "before the first order".to_owned(),
            Baseline::MaxAge(age) => format!("no older than {age:?} before an order"),
            Baseline::Always => "before every order".to_owned(),
        };
        let absent =
            if self.positive_control { "a list that shows another order" } else { "a list that was read" };
        let tag = self.tag.as_ref().map_or_else(|| "none".to_owned(), |tag| format!("in `{}`", tag.name()));
        let offset = self.utc_offset / 60;
        vec![
            ("lateness bound", format!("{:?}", self.lateness)),
            ("gateway's own timeout", format!("{:?}", self.gateway_timeout)),
            ("verification budget", format!("{:?}", self.budget())),
            ("verified", verified.to_owned()),
            ("resends", resends),
            (
                "after an undocumented 5xx",
                if self.resend_undocumented { "resent" } else { "not resent" }.to_owned(),
            ),
            ("account", mode.to_owned()),
            ("the list holds", scope.to_owned()),
            ("the list shows", shown.to_owned()),
            ("the list is known", list),
            ("absence is shown by", absent.to_owned()),
            ("reads", format!("at most one in {:?}, up to {} bytes", self.read_spacing, self.list_body_cap)),
            ("a 401 or 429 is confirmed", format!("by a list read {:?} later", self.refusal_lag_used())),
            ("tag of an order", tag),
            ("orders alike", alike.to_owned()),
            ("like one whose caller is gone", format!("waits up to {:?}", self.duplicate_hold)),
            ("trading day", format!("{:+03}:{:02}", offset / 60, (offset % 60).abs())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::WallClock;

    use super::*;
    use crate::settings::order_tag::OrderTag;

    #[test]
    fn what_is_told_of_the_settings_is_what_takes_effect() {
        let told = |settings: Settings, name| {
            let found = settings.effective().into_iter().find(|(setting, _)| *setting == name);
            found.map(|(_, value)| value).unwrap_or_default()
        };
        assert_eq!(told(Settings::default(), "orders alike"), "at the same time");
        let serialized = Settings::default().key_policy(KeyPolicy::Serialize);
        assert_eq!(told(serialized, "orders alike"), "one after the other");
        assert_eq!(told(Settings::default().resend(ResendPolicy::Never), "resends"), "none");
        let minimal = Settings::default().verify_on(VerifyOn::SpecMinimal);
        assert_eq!(told(minimal, "verified"), "504 only");
        assert_eq!(told(Settings::default(), "tag of an order"), "none");
        let tagged = Settings::default().tag(OrderTag::field("remarks"));
        assert_eq!(told(tagged, "tag of an order"), "in `remarks`");
        let day = |offset| told(Settings::default().trading_day(WallClock::default(), offset), "trading day");
        assert_eq!([19_800, 0, -12_600].map(day), ["+05:30", "+00:00", "-03:30"]);
    }
}
