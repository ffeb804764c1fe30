//! The meanings of the words in the results of `replay`, for the results themselves and for
//! `docs/cli.md`.

/// The statuses of rows.
#[allow(dead_code, reason = "the page has them, and the results spell them out")]
pub(crate) const STATUSES: [(&str, &str); 8] = [
    (
        "placed",
        "The order is at the service, under this `orderId`. If no list could be read that shows it as it was sent, a line `event: ack unconfirmed` says so: look for it.",
    ),
    ("refused", "The service looked at the order and refused it for good; `msg` says why."),
    (
        "rejected",
        "The order is at the service under this `orderId`, and the order list shows it as rejected: it is no position. A later \
         run does not send it again; to place it again, add a row for it at the end of the file.",
    ),
    (
        "not executed",
        "The service turned the request away before it looked at the order, for the token (401) or the quota (429), and the order \
         list, read at least a second later, agrees. The next run sends it again. Where no list could be read, as after the \
         token's death, the row is `unresolved`: the next run looks for its order first.",
    ),
    (
        "not sent",
        "This run has sent nothing of the order, and earlier runs nothing that was not turned away; `msg` says why. The next run \
         places it.",
    ),
    (
        "not observed",
        "The order was sent, perhaps twice, looked for beyond the lateness bound, and is not there. A later run does not send \
         it again without `--resend-absent`.",
    ),
    (
        "unresolved",
        "Whether the order is placed is not known: look for it at the service before it is placed by other means. `msg` begins \
         with the reason.",
    ),
    ("bad", "The row is no order; nothing was sent for it."),
];

/// How a row was found to be placed.
#[allow(dead_code, reason = "the page has them, and the results hold the words alone")]
pub(crate) const RESOLUTIONS: [(&str, &str); 3] = [
    ("recovered", "The answer was lost or proved nothing, and the order list shows the order."),
    (
        "resent",
        "The order was looked for and was not there, so it was sent once more, and that one is placed.",
    ),
    ("attached", "An earlier run has placed it; this one has sent nothing."),
];

/// The reasons why a row is unresolved.
pub(crate) const REASONS: [(&str, &str); 23] = [
    ("not_observed", "the order was looked for beyond the lateness bound and is not there"),
    ("resends_exhausted", "the order looked absent, and so did those that were sent in its place"),
    (
        "accepted_unknown_id",
        "the service said yes, without a readable identifier or with one that no list shows, and no list shows the order",
    ),
    ("near_match", "the list holds an order that is like this one, but not equal"),
    ("ambiguous_owner", "the list holds an equal order, but others place orders in this account too"),
    ("no_baseline", "the list holds an equal order, but whether it was there before is not known"),
    ("list_not_monotone", "the list has dropped orders that it had shown, so that absence proves nothing"),
    ("session_changed", "the list could be read only in another login session than the order was sent in"),
    ("epoch_changed", "the trading day ended before the order was found"),
    (
        "unverifiable",
        "the order list could not be read, or not be understood, so that the order could not be looked for",
    ),
    (
        "uncalibrated",
        "the list shows orders in another form than they were sent in, so that this one cannot be told from others",
    ),
    (
        "no_positive_control",
        "no order of this run has been seen in the list yet, so that one that is missing there may be placed all the same",
    ),
    ("budget", "the order was not found in the time that a search may take"),
    ("deadline", "the call's deadline came first; the order is still looked for by `orders verify`"),
    ("not_verified", "the settings do not ask the list after such an answer"),
    (
        "tainted",
        "what became of an earlier order of the same instrument and side is not known, and an order in the list may be either",
    ),
    ("owner_changed", "another process owns the account's orders now, and looks for this one"),
    ("answer_lost", "the order may have left, and its answer is lost"),
    ("answer_not_understood", "the service answered, and not as its specification says"),
    ("interrupted", "the run was ended before the answer came, or before a list confirmed it"),
    (
        "refusal_unconfirmed",
        "the service says that it did not execute the order, and no list has confirmed that",
    ),
    (
        "unwritten",
        "this run has sent nothing of the order, and the journal, which could not be written, holds a beginning of it without \
         an end: the next run looks for the order first",
    ),
    ("journal_open", "the journal cannot be written or read, and holds no end of the order"),
];
