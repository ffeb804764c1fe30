//! Turns the journal of earlier processes into the events that lead a protocol to where it ended.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use steadfast_call::ext;
use steadfast_spec::OrderRequest;

use crate::{
    journal::{Entry, Record},
    numbers::{AttemptNo, IntentNo, TradingDay},
    protocol::{
        event::Event,
        resolution::{Reason, Unresolved, Verdict},
    },
    tracker::{recovery::RecoveredOrder, undecided::Undecided},
};

/// Returns one account's entries with the right names of their days.
pub(crate) fn rightly_dated<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Cow<'a, Entry>> {
    let mut dated: Vec<Cow<'a, Entry>> = Vec::new();
    for entry in entries {
        if let Record::Renamed { from, day, intents } = &entry.record {
            let has_day = |entry: &&mut Cow<'a, Entry>| entry.record.day().is_some();
            for before in dated.iter_mut().filter(has_day) {
                before.to_mut().record.rename_day(*from, *day, intents);
            }
        }
        dated.push(Cow::Borrowed(entry));
    }
    dated
}

/// How an account's protocol gets to where the journal ends.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) events: Vec<Event>,
    /// The day that the protocol begins with: the one before today, if anything of it is known.
    pub(crate) first: TradingDay,
    /// Every order of this day and of the one before.
    pub(crate) orders: BTreeMap<IntentNo, (Option<ext::IntentId>, Arc<OrderRequest>)>,
    /// Those of them whose callers have their answers.
    pub(crate) heard: BTreeSet<IntentNo>,
    /// Undecided orders of earlier days.
    pub(crate) left: Vec<RecoveredOrder>,
    pub(crate) next_intent: u64,
}

impl Replay {
    /// Replays one account's entries as of today.
    ///
    /// Yesterday is replayed as well: its names count while midnight is near, and orders it lost may be listed today.
    /// Entries of a later day were written by a clock that ran ahead, and count as today's. Orders of earlier days whose names
    /// stand for them until today count as yesterday's.
    pub(crate) fn of<'a>(
        entries: impl IntoIterator<Item = &'a Entry, IntoIter: Clone>,
        today: TradingDay,
    ) -> Self {
        let entries = entries.into_iter();
        let named_until = entries.clone().filter_map(|entry| match entry.record {
            Record::NamedUntil { intent, day } => Some((intent, day)),
            _ => None,
        });
        let named_until: BTreeMap<IntentNo, TradingDay> = named_until.collect();
        let is_named_today = |intent| named_until.get(&intent).is_some_and(|&until| until >= today);
        let yesterday = TradingDay(today.0.saturating_sub(1));
        let mut replay = Self { first: yesterday, ..Self::default() };
        let mut turned = false;
        // Sends that placed nothing may have been dropped from the journal: number the others again.
        let mut indices: BTreeMap<AttemptNo, usize> = BTreeMap::new();
        let mut counts: BTreeMap<IntentNo, usize> = BTreeMap::new();
        let mut others: BTreeMap<IntentNo, Undecided> = BTreeMap::new();
        // Those of them whose end may be contradicted later.
        let mut ended: BTreeMap<IntentNo, Undecided> = BTreeMap::new();
        for entry in entries {
            let events = &mut replay.events;
            if !turned && entry.record.day().is_some_and(|day| day >= today) {
                turned = true;
                events.push(Event::DayBegan(today));
            }
            match entry.record.clone() {
                Record::Begun { attempt, day, name, order, .. }
                    if day < yesterday && !is_named_today(attempt.intent) =>
                {
                    replay.next_intent = replay.next_intent.max(attempt.intent.0.saturating_add(1));
                    let verdict = Verdict::Unresolved(Unresolved::new(Reason::EpochChanged, Vec::new()));
                    let (account, intent) = (entry.account.clone(), attempt.intent);
                    let order = RecoveredOrder { account, intent, name, order, verdict };
                    let undecided = others.entry(intent).or_insert_with(|| Undecided::new(order));
                    undecided.day = day;
                    undecided.begin(attempt.index);
                }
                Record::Begun { attempt, session, name, order, tag, .. } => {
                    let intent = attempt.intent;
                    replay.next_intent = replay.next_intent.max(intent.0.saturating_add(1));
                    if replay.orders.insert(intent, (name.clone(), order.clone())).is_none() {
                        events.push(Event::Opened { intent, order, name });
                        // No later order may get it.
                        events.extend(tag.map(|tag| Event::Tagged { intent, tag }));
                    } else if tag.is_none() {
                        events.push(Event::Untagged(intent));
                    }
                    let count = counts.entry(intent).or_default();
                    indices.insert(attempt, *count);
                    let attempt = AttemptNo { intent, index: *count };
                    *count += 1;
                    // The entry's place is the earliest position at which it can have left.
                    events.extend([Event::Begun { attempt, session }, Event::Sent(attempt)]);
                }
                Record::Closed { attempt, outcome, answer } => {
                    if let Some(&index) = indices.get(&attempt) {
                        let attempt = AttemptNo { intent: attempt.intent, index };
                        events.push(Event::Closed { attempt, outcome, answer });
                    } else if others.get_mut(&attempt.intent).is_some_and(|it| it.is_over(attempt, &outcome))
                    {
                        ended.extend(others.remove_entry(&attempt.intent));
                    }
                }
                Record::Found { intent, order_id, status } => {
                    if replay.orders.contains_key(&intent) {
                        events.push(Event::Found { intent, order_id, status });
                    }
                    ended.extend(others.remove_entry(&intent));
                }
                Record::Confirmed { intent } => {
                    if replay.orders.contains_key(&intent) {
                        events.push(Event::Confirmed(intent));
                    } else if others.get_mut(&intent).is_some_and(Undecided::is_confirmed) {
                        ended.extend(others.remove_entry(&intent));
                    }
                }
                // This also withdraws an acknowledgement that is not believed any more.
                Record::Unresolved { intent, .. } => {
                    if replay.orders.contains_key(&intent) {
                        events.push(Event::Disbelieved(intent));
                    }
                    others.extend(ended.remove_entry(&intent));
                }
                Record::Heard { intent } => {
                    replay.heard.insert(intent);
                }
                Record::NamedUntil { intent, day } => {
                    if replay.orders.contains_key(&intent) {
                        events.push(Event::NamedUntil { intent, day });
                    }
                }
                // A user's ruling counts as much as a list.
                Record::Ruled { intent, order_id } => {
                    if let (true, Some(order_id)) = (replay.orders.contains_key(&intent), order_id) {
                        events.push(Event::Found { intent, order_id, status: None });
                    }
                    others.remove(&intent);
                }
                Record::Seen { session, day, order_ids, complete }
                    if day >= today || (day == yesterday && !turned) =>
                {
                    events.push(Event::Known { session, order_ids, complete });
                }
                Record::Changed => events.push(Event::Changed),
                Record::Seen { .. } | Record::Renamed { .. } => {}
            }
        }
        // The day first: orders lost on the one before are no longer in doubt.
        replay.events.extend((!turned).then_some(Event::DayBegan(today)));
        replay.events.extend(others.values().filter_map(Undecided::kept_name));
        replay.events.push(Event::Restarted);
        replay.left = others.into_values().map(|undecided| undecided.order).collect();
        replay
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::{Outcome, Resend};
    use steadfast_spec::Tag;

    use super::*;
    use crate::{journal::Fold, numbers::Session, protocol::event::Answer};

    fn entries(outcomes: &[Outcome]) -> Vec<Entry> {
        let fields =
            [("symId", "S"), ("qty", "1"), ("side", "buy"), ("type", "market"), ("product", "intraday")];
        let order =
            Arc::new(OrderRequest::from_fields(fields.into_iter().chain([("validity", "day")])).unwrap());
        let sends = outcomes.iter().enumerate().flat_map(|(index, outcome)| {
            let attempt = AttemptNo { intent: IntentNo(4), index };
            let (session, day) = (Session::default(), TradingDay(1));
            let begun = Record::Begun { attempt, session, day, name: None, order: order.clone(), tag: None };
            [begun, Record::Closed { attempt, outcome: outcome.clone(), answer: Answer::Status(400) }]
        });
        sends.map(|record| Entry { account: ext::Account::default(), record }).collect()
    }

    #[test]
    fn a_renamed_day_is_renamed_in_earlier_entries_alone() {
        let account = ext::Account::default();
        let entry = |record| Entry { account: account.clone(), record };
        let seen = |day| {
            let order_ids = vec!["o".to_owned()];
            entry(Record::Seen { session: Session::default(), day, order_ids, complete: true })
        };
        let (wrong, right) = (TradingDay(1), TradingDay(3));
        let mut written = entries(&[Outcome::Accepted { order_id: Some("o".into()) }]);
        written.push(seen(wrong));
        written.push(entry(Record::Renamed { from: wrong, day: right, intents: [IntentNo(4)].into() }));
        written.push(seen(right));
        let days =
            |entries: &[Entry]| -> Vec<_> { entries.iter().filter_map(|entry| entry.record.day()).collect() };
        let dated: Vec<_> = rightly_dated(&written).into_iter().map(Cow::into_owned).collect();
        assert_eq!(days(&dated), [right; 3]);
        // A journal that is written again holds the same.
        let mut fold = Fold::default();
        written.iter().for_each(|entry| fold.add(entry.clone()));
        let kept: Vec<_> = fold.entries().cloned().collect();
        assert!(dated.iter().filter(|entry| !matches!(entry.record, Record::Renamed { .. })).eq(&kept));
        // Another order, and the same order in a later entry, keep their day.
        let others = Record::Renamed { from: right, day: wrong, intents: BTreeSet::new() };
        written.insert(0, entry(others));
        assert_eq!(days(&written)[0], wrong);
        let dated: Vec<_> = rightly_dated(&written).into_iter().map(Cow::into_owned).collect();
        assert_eq!(days(&dated), [right; 3]);
    }

    #[test]
    fn an_order_whose_later_send_has_no_tag_has_none() {
        let tagged = |with: [Option<u64>; 2]| {
            let mut entries = entries(&[Outcome::NotExecuted, Outcome::NotExecuted]);
            let begun = entries.iter_mut().filter_map(|entry| match &mut entry.record {
                Record::Begun { tag, .. } => Some(tag),
                _ => None,
            });
            begun.zip(with).for_each(|(tag, draw)| *tag = draw.map(Tag::from_draw));
            let replay = Replay::of(&entries, TradingDay(1));
            let untagged = replay.events.iter().filter(|event| matches!(event, Event::Untagged(_))).count();
            let is_kept = |event: &Event| matches!(event, Event::Tagged { .. });
            (replay.events.iter().any(is_kept), untagged)
        };
        assert_eq!(tagged([Some(7), Some(7)]), (true, 0));
        assert_eq!(tagged([Some(7), None]), (true, 1), "its tag stays taken");
        assert!(!tagged([None, None]).0);
    }

    #[test]
    fn a_refused_second_send_does_not_end_yesterdays_doubt() {
        let lost = Outcome::Unknown { resend: Resend::AfterAbsence };
        let acknowledged = Outcome::Accepted { order_id: Some("o".into()) };
        for (outcomes, left) in [
            // A regression: its refusal once ended the first send's doubt too, and the order was not reported any
            // more.
            (&[lost.clone(), Outcome::Rejected][..], 1),
            (&[lost.clone(), Outcome::NotSent], 1),
            (&[lost.clone(), Outcome::NotExecuted], 1),
            (&[Outcome::Accepted { order_id: None }], 1),
            (&[Outcome::NotExecuted, lost.clone()], 1),
            (&[Outcome::NotExecuted], 1),
            (&[Outcome::NotExecuted, Outcome::Rejected], 0),
            (&[lost, acknowledged], 0),
        ] {
            let entries = entries(outcomes);
            assert_eq!(Replay::of(&entries, TradingDay(3)).left.len(), left, "{outcomes:?}");
        }
    }
}
