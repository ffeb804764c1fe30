//! Bugs that can be planted on purpose, to see whether the tests and simulations find them.
//!
//! Only a build with `--cfg planted` knows them: there `STEADFAST_PLANTED=NAME` plants one. In every other build
//! [`Planted::is_on`] is a constant `false`, and nothing is left of the places that ask it. `cargo xtask planted`
//! plants one after the other and says what found it.

macro_rules! planted {
    ($($(#[doc = $what:literal])+ $bug:ident = $name:literal,)+) => {
        /// A bug that can be planted. Its name says what is wrong with the build that has it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Planted {
            $($(#[doc = $what])+ $bug,)+
        }

        impl Planted {
            /// All of them, with the names that `STEADFAST_PLANTED` takes.
            #[cfg(planted)]
            const NAMED: &[(Self, &str)] = &[$((Self::$bug, $name),)+];
        }
    };
}

planted! {
    // Orders: what is known of them, and when one is sent again.
    /// An order in doubt is sent again without a look at the list.
    ResendWithoutCheck = "resend-without-check",
    /// One look at the list, right after the outcome was lost, is enough.
    OneImmediateCheck = "one-immediate-check",
    /// Nobody waits until no order can appear any more.
    NoSettle = "no-settle",
    /// What is lost by our own timeout settles from there, although the gateway may still be at work.
    SettledFromOurTimeout = "settled-from-our-timeout",
    /// What could not be resolved within its budget is sent again.
    UnresolvedResent = "unresolved-resent",
    /// What may never be sent again is, once its order was found absent.
    OpaqueResent = "opaque-resent",
    /// Resends have no end.
    EndlessResends = "endless-resends",
    /// A market order is sent again however old it is.
    OldOrderResent = "old-order-resent",
    /// The caller who is gone is sent for all the same.
    ResentForNobody = "resent-for-nobody",
    /// A process that takes over no longer knows the names of the orders in doubt, and sends them again.
    ResentAfterRestart = "resent-after-restart",
    /// A resend that was granted is not judged anew when it leaves.
    GrantNotJudgedAgain = "grant-not-judged-again",
    /// The last instant for leaving is not looked at when an order leaves.
    SendByIgnored = "send-by-ignored",
    /// A send whose caller was dropped is taken for one that never left.
    DroppedSendForgotten = "dropped-send-forgotten",
    /// Orders leave although a person has halted them.
    HaltIgnored = "halt-ignored",
    /// After a panic of the service nobody reads the list any more.
    PollerStaysDead = "poller-stays-dead",
    /// A look that can wait is waited for, whoever else needs the list.
    SlowLookFirst = "slow-look-first",
    /// A read that a panic has cut short never ends.
    ReadLeftOpen = "read-left-open",
    /// Orders that appear late are reported to nobody.
    LateOrdersUnreported = "late-orders-unreported",
    /// What was lost over a connection of which nobody knows when it ended is sent again like any other.
    EndlessConnectionEnds = "endless-connection-ends",
    /// An undocumented 5xx settles when it arrives, although the gateway behind its sender may still be at work.
    ForeignErrorSettles = "foreign-error-settles",
    /// Of two orders with one identifier both are taken for placed.
    ConflictBelieved = "conflict-believed",
    /// An acknowledged order is taken for placed though no list ever shows it.
    UnlistedAcksBelieved = "unlisted-acks-believed",
    /// An acknowledged order is taken for placed though lists show another one under its identifier.
    MismatchedAcksBelieved = "mismatched-acks-believed",
    /// An order is absent though the list shows it, under the identifier that an answer gave to another one.
    DisputedAcksBelieved = "disputed-acks-believed",
    /// A list of another session confirms that a 429 was true.
    RefusalCheckedElsewhere = "refusal-checked-elsewhere",
    /// What was refused with 401 or 429 is sent again without a look at the list.
    RefusalBelieved = "refusal-believed",
    /// A look at the list right after a refusal is enough, whatever the list lags behind.
    RefusalCheckedAtOnce = "refusal-checked-at-once",
    /// An order that was refused and turns up all the same is reported to nobody.
    RefusedOrderForgotten = "refused-order-forgotten",
    /// An order that was refused for good and turns up all the same is reported to nobody.
    RejectedOrderForgotten = "rejected-order-forgotten",
    /// A 401 that nobody can repeat is told without a look whether the order is placed.
    DeadTokenBelieved = "dead-token-believed",
    /// A suspended machine's time does not count: what is old when it wakes is sent all the same.
    SuspendNotCounted = "suspend-not-counted",
    /// An order is changed although an earlier change of it may still be made.
    LateChangeOverNewer = "late-change-over-newer",
    /// An order that is acknowledged, and listed too late, takes the order of its twin, which is sent again.
    LateAckTakesTwins = "late-ack-takes-twins",
    /// A refusal is believed though the list shows its order, under the identifier that an answer gave to another one.
    DisputedRefusalsBelieved = "disputed-refusals-believed",
    /// Nobody looks into the list of a session that is over for what is watched for.
    OwnWatchesForgotten = "own-watches-forgotten",
    /// A 429 that was told stays told though no list of its session can confirm it.
    UnconfirmedRefusalsBelieved = "unconfirmed-refusals-believed",
    // Orders: what a list proves.
    /// An empty list proves an absence, whatever the list before it held.
    NoDataIsAbsence = "no-data-is-absence",
    /// A list that cannot be read counts as empty.
    UnreadableListIsClean = "unreadable-list-is-clean",
    /// A list that could not be had counts as empty.
    FailedListIsClean = "failed-list-is-clean",
    /// A list from a cache counts.
    CachedListIsClean = "cached-list-is-clean",
    /// A list that lacks what it held before still proves absences.
    PartialListIsAbsence = "partial-list-is-absence",
    /// A list that lacks what was acknowledged long ago still proves absences.
    StaleListIsAbsence = "stale-list-is-absence",
    /// A list must hold what was acknowledged a moment ago.
    YoungAcksInCanary = "young-acks-in-canary",
    /// The list of a new session is taken for that of the old one.
    SessionIgnored = "session-ignored",
    /// A list that a cache calls its own counts.
    CacheHitIsClean = "cache-hit-is-clean",
    /// One first list that could not be had is asked for only once.
    BaselineTriedOnce = "baseline-tried-once",
    /// A list is taken to name instruments as we do before it has shown one.
    SpellingTrusted = "spelling-trusted",
    /// A list is believed and kept however many orders it names.
    EndlessLists = "endless-lists",
    // Orders: whose a listed order is.
    /// An order is claimed while another's answer may still name it.
    NoOwnerWait = "no-owner-wait",
    /// An order is absent although others of its key are not settled.
    NoCohort = "no-cohort",
    /// The newest order that fits is claimed.
    NewestFirst = "newest-first",
    /// What a list shows counts as seen when it was asked for.
    BaselineAtReadStart = "baseline-at-read-start",
    /// What a list lacks counts as lacking when it was complete.
    EvidenceAtReadEnd = "evidence-at-read-end",
    /// An order listed in one session is claimed for one that was sent in another.
    SessionsShareLists = "sessions-share-lists",
    /// A record that shows two different orders alike is claimed.
    LookAlikesTaken = "look-alikes-taken",
    /// An order that yesterday's answer named is claimed today.
    OvernightAnswersForgotten = "overnight-answers-forgotten",
    /// What was lost just before midnight bars nobody from claiming what appears after it.
    OvernightLossesForgotten = "overnight-losses-forgotten",
    /// Whoever is told of an order that is like his keeps it from him whose order it is.
    LikenessTakesNews = "likeness-takes-news",
    /// An order of other terms is claimed.
    LooseMatchClaims = "loose-match-claims",
    /// An order that was changed on its way is no reason not to send it again.
    NoLooseVeto = "no-loose-veto",
    /// The trading day is whatever the wall clock says, and goes back with it.
    DayByWallClock = "day-by-wall-clock",
    /// The names of a day are free at the stroke of midnight, whoever's midnight it is.
    NamesEndAtMidnight = "names-end-at-midnight",
    /// What was lost just before midnight bars its instrument and side for the whole day that follows.
    TaintLastsAllDay = "taint-lasts-all-day",
    /// A name is free on the day that a restarted machine's clock says, although nobody else could be asked.
    UnknownDayTrusted = "unknown-day-trusted",
    /// The last look before a shutdown does not wait for refused orders that may be late.
    LateRefusalsNotAwaited = "late-refusals-not-awaited",
    /// A record that says it is an exit leg is none of ours, although its product has no legs.
    LegNamesTrusted = "leg-names-trusted",
    /// The name of an order that was refused for good stays free when a list shows the order.
    RefusedNameStaysFree = "refused-name-stays-free",
    /// An order is claimed before a list shows the older one that was just taken back from its claimant.
    RecalledOrdersUnawaited = "recalled-orders-unawaited",
    // The journal.
    /// A restarted process knows nothing of orders that were refused with 401 or 429, and sends them again unlooked.
    RefusalsUnjournaled = "refusals-unjournaled",
    /// An order leaves before it is written down.
    SentBeforeJournal = "sent-before-journal",
    /// An order leaves although it could not be written down.
    JournalFailsOpen = "journal-fails-open",
    /// What is reported durable is only written.
    JournalNotSynced = "journal-not-synced",
    /// What must be durable is written once.
    JournalWrittenOnce = "journal-written-once",
    /// A record's checksum is not looked at.
    ChecksumUnchecked = "checksum-unchecked",
    /// What is missing in the middle of the journal is taken for a torn end.
    DamageIsATornEnd = "damage-is-a-torn-end",
    /// A journal is believed in that was moved, removed or replaced, or whose lock was.
    DisplacedJournalTrusted = "displaced-journal-trusted",
    /// A journal is begun anew where the one that was written last is missing.
    LostJournalBegunAnew = "lost-journal-begun-anew",
    /// A journal is believed in that was cut, or put back from an older copy, while no process ran.
    OlderJournalBelieved = "older-journal-believed",
    /// A journal with another name is used, which another process may use under that.
    JournalLinkTaken = "journal-link-taken",
    // What an answer proves.
    /// A 502 is taken for a refusal.
    BadGatewayIsRefusal = "502-is-refusal",
    /// A 429 is counted among the 5xx.
    TooManyIsDoubt = "429-is-doubt",
    /// Every 400 is taken for a refusal.
    EveryBadRequestIsRefusal = "every-400-is-refusal",
    /// A request whose connection broke is taken for one that never left.
    LostIsNotSent = "lost-is-not-sent",
    /// hyper's `IncompleteMessage` is taken for "not sent".
    IncompleteIsNotSent = "incomplete-is-not-sent",
    /// A send that timed out is taken for one that never left.
    TimeoutIsNotSent = "timeout-is-not-sent",
    /// Every 5xx to an order is taken for the gateway's own word, whoever said it.
    AnyServerErrorIsTheGateways = "any-5xx-is-the-gateways",
    /// Whatever stands in the place of an order's identifier is one.
    PlaceholderIsIdentifier = "placeholder-is-identifier",
    /// A connection that is given up is closed in an orderly way: the kernel goes on to deliver what it was given.
    OrderlyClose = "orderly-close",
    /// A connection that ends at a proxy is taken for one that ends at the service.
    ProxyEndsWithUs = "proxy-ends-with-us",
    /// The connection of a send that is given up is left to whoever closes it in time.
    GivenUpStaysOpen = "given-up-stays-open",
    // Retry.
    /// An order in doubt is repeated like any other request.
    DoubtRepeated = "doubt-repeated",
    /// What was refused for good is repeated.
    RefusalRepeated = "refusal-repeated",
    /// There is one repeat too many.
    SixthSend = "sixth-send",
    /// What is not known to be in a list is sent again after a 401 or 429.
    UnverifiableRefusalRepeated = "unverifiable-refusal-repeated",
    /// Repeats follow at once.
    NoBackoff = "no-backoff",
    /// The answer's `Retry-After` is ignored.
    RetryAfterIgnored = "retry-after-ignored",
    /// A repeat is waited for that the deadline does not leave time for.
    DeadlineSleptThrough = "deadline-slept-through",
    /// The date in a `Retry-After` is ignored.
    DateIgnored = "date-ignored",
    /// What the limits say is not asked before a repeat is waited for.
    PermitNotPredicted = "permit-not-predicted",
    /// A repeat is made that the budget does not cover.
    BudgetOverdrawn = "budget-overdrawn",
    /// 502s in a row are repeated by the schedule, whatever is set.
    PersistentRuleIgnored = "persistent-rule-ignored",
    /// Two policies in one stack repeat each other's repeats.
    RepeatsMultiply = "repeats-multiply",
    // What other stacks got wrong (`traps.rs` of the retry crate).
    /// A clone is called in place of the service that was polled ready.
    CloneInCall = "clone-in-call",
    /// A service is kept ready while a body is waited for.
    KeptReady = "kept-ready",
    /// A call goes on although its caller has dropped it.
    CallOutlivesCaller = "call-outlives-caller",
    /// Repeats go on the permit of the first send.
    PermitOfFirstSend = "permit-of-first-send",
    /// Repeats go out with the header of the first send.
    HeaderOfFirstSend = "header-of-first-send",
    /// What a request waits for before it leaves is counted as slowness of the service.
    QueueTimeCounted = "queue-time-counted",
    /// What a layer of our own refused is repeated.
    LocalRefusalRepeated = "local-refusal-repeated",
    /// A connection that broke is taken by the policy for one that never was.
    BrokenIsRepeated = "broken-is-repeated",
    /// Jitter is cut to whole seconds.
    JitterTruncated = "jitter-truncated",
    /// A stream that is gone is repeated as an empty body.
    StreamRepeatedEmpty = "stream-repeated-empty",
    /// Debug output of a request holds its form.
    FormShown = "form-shown",
    // Limits.
    /// Answers are logged at the instant of the send.
    LoggedAtSend = "logged-at-send",
    /// The clock's error is not allowed for.
    NoMargin = "no-margin",
    /// The interpolated count is worked out in floating point.
    FloatStamps = "float-stamps",
    /// Of a zone's windows only the shortest is kept.
    OneWindowOnly = "one-window-only",
    /// Of several zones only the first is asked.
    OneZoneOnly = "one-zone-only",
    /// Repeats take their permit where nobody counts.
    RepeatsUncounted = "repeats-uncounted",
    /// A request whose answer is lost is no longer counted.
    LostSlotsFreed = "lost-slots-freed",
    /// A request that is dropped after it left is no longer counted.
    DroppedSendRefunded = "dropped-send-refunded",
    /// A permit that was granted to somebody who is gone is lost.
    DroppedGrantLeaks = "dropped-grant-leaks",
    /// Cancels are held back by lost requests for as long as polls are.
    CancelsHeldByLostSlots = "cancels-held-by-lost-slots",
    /// Nothing is left over for cancels.
    NoReserve = "no-reserve",
    /// Polls come before cancels.
    LanesSwapped = "lanes-swapped",
    /// After a pause everybody tries at once.
    NoProbe = "no-probe",
    /// A zone pauses for less than the service asked for.
    PauseShorterThanAsked = "pause-shorter-than-asked",
    /// All tokens are counted together.
    TokensMixed = "tokens-mixed",
    /// What is counted for an address is counted for each account.
    AddressPerAccount = "address-per-account",
    /// A permit is kept for a waiter that never comes for it.
    GrantKeptForNobody = "grant-kept-for-nobody",
    /// A call that was sent and is polled by nobody holds its slots for good.
    AbsentCallsHold = "absent-calls-hold",
    /// What a kernel sends again after its connection was closed is not waited for.
    OrphansForgotten = "orphans-forgotten",
    /// A limit that the gateway has lowered is not learned.
    LimitNotLearned = "limit-not-learned",
    /// A restart goes by the wall clock, though the machine has run on.
    RestartByWallClock = "restart-by-wall-clock",
    /// A window journal that could not be written is believed.
    StaleJournalTrusted = "stale-journal-trusted",
    // Tokens and logins.
    /// A request is sent again with the header that was refused.
    OldHeaderAgain = "old-header-again",
    /// A request is sent again although there is no newer token.
    SameTokenAgain = "same-token-again",
    /// Everybody who waits for a token logs in.
    LoginPerWaiter = "login-per-waiter",
    /// A failed renewal displaces a token that is still good.
    FailedRenewalDisplaces = "failed-renewal-displaces",
    /// A late 401 for an old token casts doubt on the newer one.
    LateRefusalCounts = "late-refusal-counts",
    /// An error of the past is told for ever.
    ErrorRemembered = "error-remembered",
    /// The same one-time code is submitted twice.
    StepUsedTwice = "step-used-twice",
    /// Codes go by this machine's clock, whatever the service's says.
    SkewIgnored = "skew-ignored",
    /// The count of wrong logins is not stored.
    BudgetNotStored = "budget-not-stored",
    /// A login that took too long overwrites a newer one's token.
    StaleLoginOverwrites = "stale-login-overwrites",
    /// The `Authorization` header is logged.
    TokenLogged = "token-logged",
    /// Each waiter repeats the login that has just failed.
    FailedLoginPerWaiter = "failed-login-per-waiter",
    /// A login whose caller was dropped brings no token.
    DroppedCallerStopsLogin = "dropped-caller-stops-login",
    /// The age of a token is told by a clock that stands still in a suspended machine.
    AgeByMonotonicClock = "age-by-monotonic-clock",
    /// A request that is sent again has lost its body.
    BodyLostOnResend = "body-lost-on-resend",
    /// Whoever has read a token does not see its successor.
    RollOverMissed = "roll-over-missed",
    /// All reasons for having no token are one error.
    OneAuthError = "one-auth-error",
    /// Secrets shorter than 128 bits are refused.
    ShortSecretRefused = "short-secret-refused",
    /// A callback with a state that was never issued ends the login.
    ForgedCallbackBelieved = "forged-callback-believed",
    /// A `Date` is taken for the instant, and not for the second, in which it was written.
    DateTakenForInstant = "date-taken-for-instant",
    /// A store, journal or lock that belongs to another user is used.
    OwnerUnchecked = "owner-unchecked",
    /// A link in the place of a store, journal or lock is followed.
    LinksFollowed = "links-followed",
    /// Wrong logins are counted for the credentials that were used last, and forgotten when others come.
    LastCredentialsCounted = "last-credentials-counted",
    /// Another spelling of an address or a user is another account, with wrong logins of its own.
    SpellingsAreAccounts = "spellings-are-accounts",
    /// A token with a colon in it is taken, and every request with it refused.
    ColonTokenTaken = "colon-token-taken",
    /// A login that ends with its runtime fails the requests of all others, and those of the next half minute.
    InterruptionIsFailure = "interruption-is-failure",
    /// A redirect with a parameter that cannot be read is turned away.
    OtherParametersJudged = "other-parameters-judged",
    /// Connections that say nothing keep the redirect out until they are given up.
    SilentHoldTheDoor = "silent-hold-the-door",
    /// A connection that cannot be accepted is asked for again at once.
    AcceptSpins = "accept-spins",
    /// A redirect to a port that is none is waited for at another one.
    PortGuessed = "port-guessed",
    /// A new token that is refused to a request's second send is not tried once more.
    SecondRefusalSurfaces = "second-refusal-surfaces",
    /// The age of a token is told by the wall clock, which may be set.
    AgeByWallClock = "age-by-wall-clock",
    /// Each API key of a user has wrong logins of its own.
    KeysAreAccounts = "keys-are-accounts",
    /// Logins whose end is unknown are forgotten by the next process.
    DoubtUncounted = "doubt-uncounted",
    // The sandbox.
    /// The admin API answers requests that name another host, and those of web pages.
    AdminTrustsPages = "admin-trusts-pages",
    /// A body may take as long as its request.
    SlowBodiesHold = "slow-bodies-hold",
    /// Idle connections keep new ones out.
    IdleConnectionsStay = "idle-connections-stay",
    /// A stored token that is known to be refused is taken for a good one.
    RefusedTokenTaken = "refused-token-taken",
    // The command.
    /// A service that the environment names is not seen: orders go to a sandbox.
    EnvironmentTargetIgnored = "environment-target-ignored",
    /// Real orders are placed although nobody has said that they are wanted.
    RealRunUnasked = "real-run-unasked",
    /// Orders that wait go on leaving after Ctrl-C.
    InterruptWithoutHalt = "interrupt-without-halt",
    /// Nobody reads what becomes of orders after their callers were told.
    EventsUnread = "events-unread",
    /// The key or the token in the place of an order's identifier is taken for one.
    SecretsName = "secrets-name",
    /// How an order ends whose row was told something else is shown nowhere.
    CorrectionsUnshown = "corrections-unshown",
    /// What the service says is printed as it is.
    ServiceTextRaw = "service-text-raw",
    /// The file of results is emptied before anything is placed, whatever it is.
    ResultsInPlace = "results-in-place",
    /// A token that a login has kept is of use to its own verbs only.
    KeptTokenUnused = "kept-token-unused",
    /// An error does not say what is behind it.
    ErrorHidesCause = "error-hides-cause",
    /// A service at which nobody listens is called for seconds without a word.
    RefusedPortSilent = "refused-port-silent",
    /// An expiry that is written with hyphens is none.
    HyphenedExpiryRefused = "hyphened-expiry-refused",
    /// Clear-text http goes through a proxy, which reads the token.
    ClearTextThroughProxy = "clear-text-through-proxy",
    /// `localhost` is wherever a resolver says.
    LocalhostResolved = "localhost-resolved",
    /// A replay goes on with the next row after the service has refused the token for good.
    DeadTokenTriedOn = "dead-token-tried-on",
    /// A row that was told to be refused stays so, whatever the journal says of its order.
    JournalDoubtUnshown = "journal-doubt-unshown",
    /// A secret that a service quotes in another spelling is printed.
    SpelledSecretsShown = "spelled-secrets-shown",
    /// A journal serves any file whose rows are equal to those that it tells of.
    OtherFileAttached = "other-file-attached",
    /// A file that was sent under one journal is sent once more under another.
    OtherJournalUnseen = "other-journal-unseen",
    /// A row whose first order was settled for a second one is asked for under the name of the first.
    SettledRowSentAnew = "settled-row-sent-anew",
}

impl Planted {
    /// True if this build has the bug.
    #[cfg(not(planted))]
    #[inline]
    #[must_use]
    pub const fn is_on(self) -> bool {
        false
    }

    /// True if this run has the bug.
    ///
    /// # Panics
    ///
    /// If `STEADFAST_PLANTED` names none.
    #[cfg(planted)]
    #[must_use]
    pub fn is_on(self) -> bool {
        static CHOSEN: std::sync::OnceLock<Option<Planted>> = std::sync::OnceLock::new();
        let chosen = CHOSEN.get_or_init(|| {
            let name = std::env::var("STEADFAST_PLANTED").ok().filter(|name| !name.is_empty())?;
            let named = Self::NAMED.iter().find(|(_, its)| *its == name);
            Some(named.unwrap_or_else(|| panic!("no bug is called {name:?}")).0)
        });
        *chosen == Some(self)
    }
}
