use super::*;

#[test]
fn a_request_without_facts_knows_nothing() {
    let mut extensions = Extensions::new();
    assert!(Call::of(&extensions).route().is_none() && Call::of(&extensions).lane().is_none());
    Call::of_mut(&mut extensions).set_lane(Lane::Bulk).set_intent(IntentId::new("7"));
    assert_eq!(Call::of(&extensions).lane(), Some(Lane::Bulk));
    assert_eq!(Call::of(&extensions).intent(), Some(&IntentId::new("7")));
    assert_eq!(extensions.len(), 1);
}

#[test]
fn a_change_is_seen_by_no_other_clone() {
    let mut first = Extensions::new();
    Call::of_mut(&mut first).set_lane(Lane::Bulk);
    let mut repeat = first.clone();
    Call::of_mut(&mut repeat).set_lane(Lane::Critical).set_repeats(1).put_at_head_of_lane();
    assert_eq!((Call::of(&first).lane(), Call::of(&first).repeats()), (Some(Lane::Bulk), 0));
    assert!(!Call::of(&first).is_at_head_of_lane());
}

#[test]
fn the_next_send_has_no_evidence_of_the_last() {
    let mut call = Call::default();
    let stamp = SendStamp::new();
    call.set_lane(Lane::Bulk).set_send(stamp);
    let next = call.next_send();
    assert_eq!((next.send().is_some(), next.lane()), (false, Some(Lane::Bulk)));
    assert!(call.send().is_some());
}
