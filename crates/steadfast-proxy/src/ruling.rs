//! An operator's word on an order that nothing else resolves.

use http::{Response, StatusCode};
use steadfast::{
    dedup::{IntentNo, Ruling},
    ext::Account,
    spec::Form,
};

use crate::{
    answer::{AnswerBody, text},
    proxy::Proxy,
};

/// The path of the call that rules.
pub(crate) const RULE: &str = "/-/rule";

/// A ruling on one order.
pub(crate) struct Ruled {
    account: Account,
    intent: IntentNo,
    ruling: Ruling,
}

impl Ruled {
    /// Returns the target of the call that rules on an order, without the ruling at its end.
    pub(crate) fn target(account: &Account, intent: IntentNo) -> String {
        let query = Form::new().with("account", account.as_str()).with("intent", intent.0.to_string());
        format!("{RULE}?{}", query.encode())
    }

    /// Reads a query: `account` and `intent` as the journal has them, and `placed` with the order's id or `not-placed`.
    pub(crate) fn read(query: &str) -> Option<Self> {
        let form = Form::parse(query.as_bytes()).ok()?;
        let (mut account, mut intent, mut ruling) = (None, None, None);
        for (name, value) in form.iter() {
            let was_there = match name {
                "account" => account.replace(Account::new(value.to_owned())).is_some(),
                "intent" => intent.replace(IntentNo(value.parse().ok()?)).is_some(),
                "placed" if is_order_id(value) => {
                    ruling.replace(Ruling::Placed { order_id: value.to_owned() }).is_some()
                }
                "not-placed" if value.is_empty() => ruling.replace(Ruling::NotPlaced).is_some(),
                _ => return None,
            };
            if was_there {
                return None;
            }
        }
        Some(Self { account: account?, intent: intent?, ruling: ruling? })
    }

    /// Rules. The ruling is in the journal, if there is one, moments after.
    pub(crate) fn apply(self, proxy: &Proxy) -> Response<AnswerBody> {
        let client = proxy.forward.client.get();
        let tracker = client.tracker();
        let known = tracker.unresolved();
        let order = known.iter().find(|its| its.intent == self.intent && its.account == self.account);
        let order_id = match &self.ruling {
            Ruling::Placed { order_id } => Some(order_id.clone()),
            _ => None,
        };
        if let Err(refused) = tracker.resolve(Some(&self.account), self.intent, self.ruling) {
            return text(StatusCode::CONFLICT, format!("{refused}\n"));
        }
        if let Some(name) = order.and_then(|order| order.name.as_ref()) {
            proxy.forward.dashboard.ruled(name.as_str(), order_id);
        }
        text(StatusCode::OK, "ruled\n")
    }
}

fn is_order_id(text: &str) -> bool {
    !text.trim().is_empty() && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ruling_is_read_whole_or_not_at_all() {
        let read = |query| Ruled::read(query).map(|ruled| (ruled.intent.0, ruled.ruling));
        let placed = Ruling::Placed { order_id: "26 1".to_owned() };
        assert_eq!(read("account=https%3A%2F%2Fx&intent=7&placed=26+1"), Some((7, placed)));
        assert_eq!(read("intent=7&account=&not-placed="), Some((7, Ruling::NotPlaced)));
        for bad in [
            "",
            "account=a&intent=7",
            "account=a&intent=x&not-placed=",
            "account=a&intent=7&placed=",
            "account=a&intent=7&placed=%0a",
            "account=a&intent=7&placed=1&not-placed=",
            "account=a&intent=7&intent=8&not-placed=",
            "intent=7&not-placed=",
            "account=a&intent=7&not-placed=&x=1",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
