//! When a client may send what, decided only from what it has seen: a second, independent version of the policy.
//!
//! The books do not show a client that repeats at once, or too often: that is harmless until a gateway is overloaded.

mod schedule;

use std::{collections::BTreeMap, time::Duration};

use steadfast::dedup::Settings;
use tokio::time::Instant;

use self::schedule::{Courses, Loop, MOST_REPLAYS, Refused, Then, Waits, is_unknown_yet, refused};
use crate::sim::{
    orders::{session::Session, workload::Workload, world::World},
    wire::{Call, Ended, Ending, Exchange, Says, Seen},
};

/// The latest end of a call. An order that waited before its send has less time to be searched for.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
/// The longest wait for a permit while no zone is closed.
const PERMIT: Duration = Duration::from_secs(60);
/// With at most this many unanswered sends, their slots leave room for every lane.
const FEW_LOST: usize = 7;
/// The greatest age of a resend, by a clock that counts suspension.
const OLDEST_RESEND: Duration = Duration::from_secs(60);
/// How many lists must lack an order before it is sent again.
const NEGATIVES: usize = 2;

/// The broken rules, and how often.
#[derive(Debug, Default)]
struct Broken(BTreeMap<&'static str, u64>);

impl Broken {
    fn add(&mut self, rule: &'static str, is_broken: bool) {
        if is_broken {
            *self.0.entry(rule).or_default() += 1;
        }
    }

    fn extend(&mut self, rule: Option<&'static str>) {
        rule.into_iter().for_each(|rule| self.add(rule, true));
    }
}

/// Returns which rules a session has broken, and how often.
///
/// Judges what the client's own end of the wire has seen. Sessions in which a process died are not judged, because the
/// next process does not know its waits.
pub(crate) fn broken(world: &World, workload: &Workload, session: &Session) -> Vec<(&'static str, u64)> {
    if world.canary.is_some() || session.crash.is_some() {
        return Vec::new();
    }
    let exchanges = &session.seen.exchanges;
    let closes = |ended| matches!(ended, Ended::Answered { status: 401 | 429, .. });
    let lost = |exchange: &&Exchange| matches!(exchange.ended, None | Some((_, Ended::Broken)));
    let quiet = exchanges.iter().all(|exchange| !exchange.ended.is_some_and(|(_, ended)| closes(ended)))
        && exchanges.iter().filter(lost).count() <= FEW_LOST
        && workload.wanted.iter().all(|wanted| wanted.haste.is_none());
    // A caller that got another order's identifier cancels the same order as that one's caller.
    let judged =
        |exchange: &&Exchange| session.seen.misled.is_empty() || !matches!(exchange.of, Call::Cancel(_));
    let exchanges: Vec<Exchange> = exchanges.iter().filter(judged).cloned().collect();
    let begun = workload.wanted.iter().zip(&session.begun);
    let begun = begun.filter_map(|(wanted, begun)| Some((Call::Order(wanted.number), (*begun)?))).collect();
    let mut broken = judge(&exchanges, &begun, &world.settings, session.ending, quiet);
    judge_arrivals(&session.seen, &mut broken);
    broken.0.into_iter().collect()
}

/// Checks that no more requests arrive than the client sent: a send that it takes for unsent must not reach the
/// gateway.
fn judge_arrivals(seen: &Seen, broken: &mut Broken) {
    let left = |exchange: &&Exchange| !matches!(exchange.ended, Some((_, Ended::NotSent)));
    let mut sends: BTreeMap<&Call, u64> = BTreeMap::new();
    for exchange in seen.exchanges.iter().filter(left) {
        *sends.entry(&exchange.of).or_default() += 1;
    }
    for (call, &arrivals) in &seen.arrivals {
        broken.add("arrived_unsent", arrivals > sends.get(call).copied().unwrap_or_default());
    }
}

/// `quiet`: no zone was closed, few slots were lost and no token died, so that permits come soon, and no caller of a
/// harmless call leaves.
///
/// `begun`: when the last call for an order began, which has a schedule of its own.
fn judge(
    exchanges: &[Exchange],
    begun: &BTreeMap<Call, Instant>,
    settings: &Settings,
    ending: Ending,
    quiet: bool,
) -> Broken {
    let mut calls: BTreeMap<&Call, Vec<&Exchange>> = BTreeMap::new();
    for exchange in exchanges {
        calls.entry(&exchange.of).or_default().push(exchange);
    }
    let lists: Vec<&Exchange> = calls.get(&Call::Verification).cloned().unwrap_or_default();
    let (tokens, mut broken) = (refused(exchanges), Broken::default());
    for (call, sends) in calls {
        match call {
            Call::Order(_) => {
                let earlier =
                    sends.partition_point(|send| begun.get(call).is_some_and(|begun| send.sent < *begun));
                let (earlier, last) = sends.split_at(earlier);
                for sends in [earlier, last] {
                    judge_order(sends, &lists, (settings, ending), &tokens, &mut broken);
                }
            }
            Call::Cancel(_) => judge_harmless(Loop::of_cancel(), &sends, quiet, &tokens, &mut broken),
            Call::Look(_) => judge_harmless(Loop::default(), &sends, quiet, &tokens, &mut broken),
            Call::Verification | Call::Other => {}
        }
    }
    broken
}

/// Returns what an order's send allows, by the classes of `docs/design/stack.md`, section 3.
fn after_order(ended: Option<Ended>) -> Then {
    match ended {
        Some(Ended::NotSent) => Then::Repeat,
        Some(Ended::Answered { status: 429, .. }) => Then::Repeat,
        Some(Ended::Answered { status: 401, .. }) => Then::Replay,
        None | Some(Ended::Broken) => Then::Verify,
        Some(Ended::Answered { status: 500..=599, .. }) => Then::Verify,
        Some(Ended::Answered { status: 400, says: Says::InternalError, .. }) => Then::Verify,
        // The rest is an acceptance, a refusal, or an end after which nothing may ever be sent.
        Some(Ended::Answered { .. }) => Then::End,
    }
}

/// Returns what may follow a send that is harmless to repeat: the column before it.
fn after_harmless(ended: Option<Ended>) -> Then {
    match after_order(ended) {
        Then::Verify => Then::Repeat,
        then => then,
    }
}

fn judge_order(
    sends: &[&Exchange],
    lists: &[&Exchange],
    (settings, ending): (&Settings, Ending),
    tokens: &Refused,
    broken: &mut Broken,
) {
    let mut courses = Courses::default();
    let (mut doubts, mut replays) = (0, 0);
    let mut lost: Option<&Exchange> = None;
    for pair in sends.windows(2) {
        let [previous, send] = pair else { continue };
        let then = after_order(previous.ended.map(|(_, ended)| ended));
        if then == Then::Verify {
            lost.get_or_insert(previous);
        }
        // A send without a connection carries nothing; the client checks the age only once there is one.
        if let Some(lost) = lost.filter(|_| !matches!(send.ended, Some((_, Ended::NotSent)))) {
            let age = send.sent_by_boot.saturating_sub(lost.sent_by_boot);
            broken.add("resent_too_old", age > OLDEST_RESEND);
        }
        match then {
            Then::Verify => {
                doubts += 1;
                courses.restart();
                let answered = matches!(previous.ended, Some((_, Ended::Answered { .. })));
                let proved =
                    (answered || ending.is_promised()) && is_proved_absent(previous, send, lists, settings);
                broken.add("resent_unproved", !proved || doubts > 1);
            }
            // In the session of another token the order is checked again, and its schedule restarts.
            Then::Replay | Then::Repeat if then == Then::Replay || previous.session != send.session => {
                replays += 1;
                courses.restart();
                broken.add("replayed_again", replays > MOST_REPLAYS);
                broken
                    .add("replayed_too_soon", then == Then::Replay && is_unknown_yet(previous, send, tokens));
            }
            // A resend that did not leave may need another check, and then restarts its schedule.
            Then::Repeat if doubts > 0 && looked_between(lists, previous, send) => courses.restart(),
            Then::Repeat | Then::Replay | Then::End => {
                let not_sent = matches!(previous.ended, Some((_, Ended::NotSent)));
                let waits = match (not_sent && doubts == 0).then(|| lists.last()).flatten() {
                    Some(_) if reads_meanwhile(lists, previous, send) => Waits::ForAList,
                    Some(last) if last.sent >= send.sent => Waits::ForAListThatQueues,
                    _ => Waits::No,
                };
                broken.extend(courses.next((previous, send), then, waits, tokens));
            }
        }
    }
}

fn looked_between(lists: &[&Exchange], previous: &Exchange, send: &Exchange) -> bool {
    lists.iter().any(|list| list.sent > previous.sent && list.sent < send.sent)
}

/// True if a list was awaited between two sends, whenever it was requested.
fn reads_meanwhile(lists: &[&Exchange], previous: &Exchange, send: &Exchange) -> bool {
    let ends_after = |list: &Exchange| list.ended.is_none_or(|(ended, _)| ended > previous.sent);
    lists.iter().any(|list| list.sent < send.sent && ends_after(list))
}

/// True if the lists between two sends can have proved that the first one will never be listed.
fn is_proved_absent(lost: &Exchange, again: &Exchange, lists: &[&Exchange], settings: &Settings) -> bool {
    let doubted = lost.ended.map_or(lost.sent, |(at, _)| at);
    let settled = match lost.ended {
        Some((at, Ended::Answered { .. })) => at,
        // The gateway may have got it just before the end, and still be working on it.
        _ => doubted + settings.gateway_bound(),
    } + settings.lateness_bound();
    let read = |list: &&&Exchange| {
        let whole = |&(at, ended): &(Instant, Ended)| {
            matches!(ended, Ended::Answered { status: 200, .. }) && at <= again.sent
        };
        list.sent >= doubted && list.ended.as_ref().is_some_and(whole)
    };
    let reads: Vec<_> = lists.iter().filter(read).collect();
    reads.len() >= NEGATIVES && reads.iter().any(|list| list.sent >= settled)
}

fn judge_harmless(
    mut loop_of: Loop,
    sends: &[&Exchange],
    quiet: bool,
    tokens: &Refused,
    broken: &mut Broken,
) {
    for pair in sends.windows(2) {
        let then = after_harmless(pair[0].ended.map(|(_, ended)| ended));
        broken.extend(loop_of.next(pair[0], pair[1], then, tokens));
    }
    let (Some(first), Some(last)) = (sends.first(), sends.last()) else { return };
    let Some((at, ended)) = last.ended.filter(|_| quiet) else { return };
    if after_harmless(Some(ended)) == Then::Repeat
        && let Some(wait) = loop_of.wait(ended)
        && at + wait.mul_f64(1.1) + PERMIT < first.sent + DEADLINE
    {
        broken.add("given_up_early", true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERNAL: Ended = Ended::Answered { status: 400, says: Says::InternalError, retry_after: None };

    fn answered(status: u16) -> Option<Ended> {
        Some(Ended::Answered { status, says: Says::Nothing, retry_after: None })
    }

    /// Returns sends with these start times, in milliseconds, and ends; each ends after 100 ms.
    fn sends(call: &Call, start: Instant, all: &[(u64, Option<Ended>)]) -> Vec<Exchange> {
        let at = |millis| start + Duration::from_millis(millis);
        let exchange = |&(millis, ended): &(u64, Option<Ended>)| Exchange {
            of: call.clone(),
            session: 0,
            sent: at(millis),
            sent_by_boot: Duration::from_millis(millis),
            ended: ended.map(|ended| (at(millis + 100), ended)),
        };
        all.iter().map(exchange).collect()
    }

    fn found(exchanges: &[Exchange]) -> Vec<&'static str> {
        judge(exchanges, &BTreeMap::new(), &Settings::new(), Ending::Abortive, true).0.into_keys().collect()
    }

    #[test]
    fn only_calls_off_the_schedule_break_a_rule() {
        let (start, look) = (Instant::now(), Call::Look(1));
        let e = answered(500);
        let full = [(0, e), (1_100, e), (3_200, e), (7_300, e), (15_400, e)];
        let ends = |all: &[_]| found(&sends(&look, start, all));
        assert!(ends(&full).is_empty());
        let mut sixth = full.to_vec();
        sixth.push((60_000, e));
        assert_eq!(ends(&sixth), ["sent_too_often"]);
        assert_eq!(ends(&[(0, e), (1_099, answered(200))]), ["repeated_too_soon"]);
        assert_eq!(ends(&[(0, answered(503)), (4_000, answered(200))]), ["repeated_too_soon"]);
        assert_eq!(ends(&[(0, answered(404)), (9_000, answered(200))]), ["repeated_after_the_end"]);
        assert_eq!(ends(&[(0, e), (1_100, e)]), ["given_up_early"]);
        let asked = Some(Ended::Answered {
            status: 429,
            says: Says::Nothing,
            retry_after: Some(Duration::from_secs(7)),
        });
        assert_eq!(ends(&[(0, asked), (6_000, answered(200))]), ["repeated_too_soon"]);
    }

    #[test]
    fn a_throttled_cancel_waits_a_second_each_time_until_its_deadline() {
        let (start, cancel, e) = (Instant::now(), Call::Cancel("o1".into()), answered(429));
        let ends = |all: &[_]| found(&sends(&cancel, start, all));
        let six = [0, 1_100, 2_200, 3_300, 4_400, 5_500].map(|at| (at, e));
        assert!(!ends(&six).contains(&"sent_too_often") && !ends(&six).contains(&"repeated_too_soon"));
        assert_eq!(ends(&[(0, e), (999, answered(200))]), ["repeated_too_soon"]);
        let failed = answered(500);
        assert_eq!(ends(&[(0, failed), (1_100, failed), (2_200, answered(200))]), ["repeated_too_soon"]);
        let told = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            Some(Ended::Answered { status: 429, says: Says::Nothing, retry_after })
        };
        assert_eq!(ends(&[(0, told(8)), (7_000, answered(200))]), ["repeated_too_soon"]);
        assert!(ends(&[(0, told(8)), (8_000, answered(200))]).is_empty());
        assert!(ends(&[(0, told(60)), (1_100, answered(200))]).is_empty(), "a long one is not followed");
    }

    #[test]
    fn a_refused_token_waits_until_it_can_be_known() {
        let (start, dead) = (Instant::now(), answered(401));
        let ends = |call: &Call, all: &[(u64, usize)]| {
            let last = all.len() - 1;
            let ended = |index| if index == last { answered(200) } else { dead };
            let times: Vec<_> = all.iter().enumerate().map(|(index, &(at, _))| (at, ended(index))).collect();
            let mut all_sends = sends(call, start, &times);
            for (send, &(_, token)) in all_sends.iter_mut().zip(all) {
                send.session = token;
            }
            found(&all_sends)
        };
        for call in [Call::Look(1), Call::Order(1)] {
            let ends = |all: &[(u64, usize)]| ends(&call, all);
            assert!(ends(&[(0, 0), (100, 1)]).is_empty());
            assert!(ends(&[(0, 0), (2_100, 0)]).is_empty());
            assert_eq!(ends(&[(0, 0), (2_099, 0)]), ["replayed_too_soon"]);
            assert!(ends(&[(0, 0), (100, 1), (2_200, 1), (2_300, 2)]).is_empty());
            assert_eq!(ends(&[(0, 0), (100, 1), (200, 2), (300, 3), (400, 4)]), ["replayed_again"]);
        }
        assert_eq!(ends(&Call::Look(1), &[(0, 0), (2_100, 0), (4_200, 0)]), ["replayed_again"]);
    }

    #[test]
    fn an_order_in_doubt_is_resent_only_after_settling_lists() {
        let (start, order) = (Instant::now(), Call::Order(1));
        let again = |lost: Option<Ended>, at: u64, reads: &[u64]| {
            let mut all = sends(&order, start, &[(0, lost), (at, answered(200))]);
            let lists: Vec<_> = reads.iter().map(|&at| (at, answered(200))).collect();
            all.extend(sends(&Call::Verification, start, &lists));
            found(&all)
        };
        let unproved = ["resent_unproved"];
        assert!(again(Some(INTERNAL), 15_300, &[600, 15_100]).is_empty());
        assert_eq!(again(Some(INTERNAL), 15_300, &[600, 15_099]), unproved, "not settled");
        assert_eq!(again(Some(INTERNAL), 15_300, &[50, 15_100]), unproved, "begun before the doubt");
        assert_eq!(again(None, 15_300, &[600, 15_100]), unproved, "the gateway may still be at work");
        assert!(again(None, 45_200, &[600, 45_000]).is_empty());
        assert_eq!(again(answered(400), 99_000, &[600, 45_000]), ["repeated_after_the_end"]);
        // A suspended machine did not count this time.
        let mut all = sends(&order, start, &[(0, Some(INTERNAL)), (15_300, answered(200))]);
        all.extend(sends(&Call::Verification, start, &[(600, answered(200)), (15_100, answered(200))]));
        assert!(found(&all).is_empty());
        all[1].sent_by_boot += Duration::from_secs(10_800);
        assert_eq!(found(&all), ["resent_too_old"]);
        // A resend that did not leave.
        let thrice = |between: &[u64]| {
            let refused = Some(Ended::NotSent);
            let resends = [(0, Some(INTERNAL)), (15_300, refused), (15_500, answered(200))];
            let mut all = sends(&order, start, &resends);
            let lists: Vec<_> = [&[600, 15_100], between].concat();
            let lists: Vec<_> = lists.iter().map(|&at| (at, answered(200))).collect();
            all.extend(sends(&Call::Verification, start, &lists));
            found(&all)
        };
        assert_eq!(thrice(&[]), ["repeated_too_soon"]);
        assert!(thrice(&[15_400]).is_empty(), "it was looked for once more");
    }

    #[test]
    fn a_resend_is_too_old_only_if_it_leaves() {
        let (start, order, refused) = (Instant::now(), Call::Order(1), Some(Ended::NotSent));
        let judged = |resends: &[(u64, Option<Ended>)]| {
            let mut all = sends(&order, start, &[&[(0, Some(INTERNAL))], resends].concat());
            let lists = [(600, answered(200)), (15_100, answered(200))];
            all.extend(sends(&Call::Verification, start, &lists));
            found(&all)
        };
        assert!(judged(&[(61_000, refused)]).is_empty(), "nothing has left");
        assert_eq!(judged(&[(61_000, answered(200))]), ["resent_too_old"]);
        assert_eq!(judged(&[(59_000, refused), (60_200, answered(200))]), ["resent_too_old"]);
        assert!(judged(&[(57_000, refused), (58_200, answered(200))]).is_empty());
    }

    #[test]
    fn an_order_that_waits_for_a_list_restarts_its_schedule_once() {
        let (start, order, e) = (Instant::now(), Call::Order(1), Some(Ended::NotSent));
        let judged = |at: &[u64], lists: &[u64]| {
            let mut all = sends(&order, start, &at.iter().map(|&at| (at, e)).collect::<Vec<_>>());
            let lists: Vec<_> = lists.iter().map(|&at| (at, answered(200))).collect();
            all.extend(sends(&Call::Verification, start, &lists));
            found(&all)
        };
        let (soon, again) = (["repeated_too_soon"], [1_000, 2_200, 3_400, 5_600]);
        assert_eq!(judged(&again, &[]), soon, "no list was awaited");
        assert_eq!(judged(&again, &[800]), soon, "it was there before");
        assert!(judged(&again, &[1_500]).is_empty());
        assert!(judged(&again, &[950]).is_empty(), "asked for before, and awaited since");
        assert_eq!(judged(&[1_000, 2_200, 3_400, 4_600], &[1_500, 2_600, 3_800]), soon, "a second time");
        assert!(judged(&[0, 2_100, 3_200], &[5_000]).is_empty(), "the list got no permit in time");
        assert_eq!(judged(&[0, 2_099, 3_199], &[5_000]), soon, "there was no time to wait for it");
        assert_eq!(judged(&[0, 2_100, 3_200], &[]), soon, "none was asked for");
        assert_eq!(judged(&[0, 2_100, 4_200, 5_300], &[6_000]), soon, "only once");
        let later = [1_000, 2_200, 4_400, 5_600, 7_800];
        assert!(judged(&later, &[1_500, 3_000]).is_empty(), "the first list was for another order");
        assert_eq!(judged(&later, &[1_500]), soon);
    }
}
