//! Writes an account's journal, and replays it.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, header};
use steadfast_call::{Call, ext};
use tokio::time::timeout;

use super::{Account, Starter};
use crate::{
    journal::{Durable, Entry, Recorder},
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        effect::Effect,
        event::Event,
        order_protocol::OrderProtocol,
        resolution::{Reason, Unresolved, Verdict},
    },
    tracker::{
        recovery::RecoveredOrder,
        replay::{Replay, rightly_dated},
        shared_protocol::State,
    },
};

/// How long a caller waits for a found order to be durable.
const PATIENCE: Duration = Duration::from_secs(1);

/// An attempt that was opened.
pub(crate) struct Begun {
    pub(crate) attempt: AttemptNo,
    /// When its journal entry is durable, if there is a journal.
    pub(crate) durable: Option<Durable>,
    /// The trading day of that entry.
    pub(crate) journal_day: Option<TradingDay>,
}

/// The orders of earlier processes whose callers may not know how they ended.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) in_doubt: Vec<RecoveredOrder>,
    /// In doubt on days that are over.
    pub(crate) left: Vec<RecoveredOrder>,
    /// Placed under a name, and not noted as heard.
    pub(crate) unheard: Vec<IntentNo>,
}

impl Account {
    /// Replays the journal and continues it.
    pub(crate) fn replay<'a>(
        &mut self,
        recorder: Recorder,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Replayed {
        let now = self.shared.clock().now();
        let entries = rightly_dated(entries);
        let state = self.shared.get_mut();
        let today = state.time.resume(entries.iter().filter_map(|entry| entry.record.day()).max());
        let replay = Replay::of(entries.iter().map(AsRef::as_ref), today);
        state.resume(OrderProtocol::new(self.settings.clone(), replay.first), replay.next_intent);
        // Its history says which day it begins with.
        state.protocol.step(now, Event::DayBegan(replay.first));
        for event in replay.events {
            // There are no listeners yet, and these events are in the journal already.
            state.protocol.step(now, event);
        }
        let (mut in_doubt, mut unheard) = (Vec::new(), Vec::new());
        for (intent, (name, order)) in replay.orders {
            match state.protocol.verdict(intent) {
                verdict @ (Verdict::Pending | Verdict::Unresolved(_)) => {
                    let account = self.name.clone();
                    in_doubt.push(RecoveredOrder { account, intent, name, order, verdict });
                }
                verdict if is_placed(&verdict) && name.is_some() && !replay.heard.contains(&intent) => {
                    unheard.push(intent);
                }
                _ => {}
            }
        }
        self.recorder = Some(recorder);
        Replayed { in_doubt, left: replay.left, unheard }
    }

    /// Returns an order of an earlier process, if it is still known as placed.
    pub(crate) fn placed_order(&self, intent: IntentNo) -> Option<RecoveredOrder> {
        self.shared.look(|state| {
            let verdict = state.protocol.verdict(intent);
            let (name, order) = state.protocol.asked(intent).filter(|_| is_placed(&verdict))?;
            Some(RecoveredOrder { account: self.name.clone(), intent, name, order, verdict })
        })
    }

    /// Writes down that the caller of the order of this name has its answer.
    pub(crate) fn note_heard(&self, name: &ext::IntentId) {
        let named = || self.shared.look(|state| state.protocol.named(name).map(|(intent, _)| intent));
        if let Some(recorder) = &self.recorder
            && let Some(intent) = named()
        {
            recorder.heard(intent);
        }
    }

    /// Opens an attempt, or withholds it: an intent that is in doubt is not sent.
    ///
    /// With a journal it must be durable before it leaves.
    pub(crate) fn begin(self: &Arc<Self>, intent: IntentNo, session: Session) -> Option<Begun> {
        self.with(|state, now, effects| {
            let attempt = state.protocol.next_attempt(intent, session)?;
            state.time.pin();
            effects.extend(state.protocol.step(now, Event::Begun { attempt, session }));
            let written = self.recorder.as_ref().and_then(|recorder| {
                let day = state.time.latest_day(&self.settings);
                let (name, order) = state.protocol.asked(intent)?;
                let tag = state.protocol.tag_of(intent);
                Some((recorder.begun(attempt, session, day, name, order, tag), day))
            });
            let (durable, journal_day) = written.unzip();
            Some(Begun { attempt, durable, journal_day })
        })
    }

    /// Returns the session that a request is sent in.
    ///
    /// A token's generation counts within one process; a journal needs a name that outlives it.
    pub(crate) fn session_of(&self, headers: &HeaderMap, extensions: &http::Extensions) -> Session {
        match &self.recorder {
            Some(recorder) => recorder.session_of(headers),
            None => match Call::of(extensions).generation() {
                Some(generation) => Session::new(Some(generation)),
                // No layer counts the tokens here, and two of them may be accepted at once.
                None => headers.get(header::AUTHORIZATION).map_or_else(Session::default, hashed),
            },
        }
    }

    /// Starts the reads that are due, unless a poller runs already.
    pub(crate) fn resume(self: &Arc<Self>, starter: impl FnOnce() -> Option<Starter>) -> bool {
        let known = self.start_with(starter);
        self.step(Event::Tick);
        known
    }

    /// Waits until an order of an earlier process is decided.
    pub(crate) async fn recovered(self: &Arc<Self>, intent: IntentNo) -> Verdict {
        self.until(|protocol| !matches!(protocol.verdict(intent), Verdict::Pending | Verdict::Resend)).await;
        self.recovered_now(intent)
    }

    /// Returns how an order of an earlier process stands.
    pub(crate) fn recovered_now(&self, intent: IntentNo) -> Verdict {
        match self.verdict(intent) {
            // A list has confirmed that the service did not execute it, or a repeat under its name was rejected.
            Verdict::NotPlaced if self.shared.look(|state| state.protocol.was_told_not_placed(intent)) => {
                Verdict::NotPlaced
            }
            // An order that was in doubt and is forgotten may still exist.
            Verdict::NotPlaced => Verdict::Unresolved(Unresolved::new(Reason::EpochChanged, Vec::new())),
            Verdict::Unresolved(_) if self.is_ruled(intent) => Verdict::NotPlaced,
            verdict => verdict,
        }
    }

    /// Waits until a found order is durable, before its caller is told.
    ///
    /// Otherwise the next process would have to find it again, and might take the other one of two equal orders. A
    /// journal that is slow or has failed delays no caller for long.
    pub(crate) async fn wait_durable(&self) {
        if let Some(recorder) = &self.recorder {
            let _ = timeout(PATIENCE, recorder.flush()).await;
        }
    }

    /// Writes an event to the journal, if it must outlive the process, and returns it for the protocol.
    pub(super) fn noted(&self, event: Event) -> Event {
        if let Some(recorder) = &self.recorder {
            recorder.event(&event);
        }
        event
    }

    pub(super) fn note_effects(&self, state: &State, effects: &[Effect]) {
        let Some(recorder) = &self.recorder else { return };
        let protocol = &state.protocol;
        // Lists seen on a day on which no order may leave tell nothing about that day.
        let is_void = self.settings.refuse_disputed_day && self.is_disputed(state);
        for effect in effects {
            if is_void && matches!(effect, Effect::Seen { .. }) {
                continue;
            }
            recorder.effect(effect, protocol, || state.time.latest_day(&self.settings));
        }
    }
}

fn is_placed(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Acknowledged { .. } | Verdict::Recovered { .. })
}

/// Returns the session of a token without a generation, hashed with a key of this process alone.
fn hashed(token: &HeaderValue) -> Session {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    Session::hashed(KEY.hash_one(token.as_bytes()))
}
