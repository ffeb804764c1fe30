//! The invariants, each as a checker of finished runs, and each tested with a planted violation.
//!
//! The checkers follow the design, not the code: they read the registry's history, the callers' results and the
//! gateway's actions, and match records by a plain comparison of their own. They run after every scenario and random
//! session of the layer's own tests, and after simulated sessions.

mod acknowledged;
mod evidence;
mod history;
mod other_form;
mod ownership;
mod run;
mod sends;
mod surface;
mod tags;
mod unlisted;

pub use self::run::{Answer, Order, Run};

/// Checks one invariant in a run; the error describes the violation.
pub type Checker = fn(&Run) -> Result<(), String>;

/// All invariants, by number.
pub const ALL: [(&str, Checker); 24] = [
    ("I1", sends::i01_nothing_leaves_unrecorded),
    ("I2", ownership::i02_one_owner_per_order),
    ("I3", ownership::i03_no_more_orders_than_intents),
    ("I4", sends::i04_a_resend_needs_every_earlier_attempt_dead),
    ("I5", evidence::i05_absence_cites_two_valid_reads),
    ("I6", evidence::i06_first_seen_is_written_once_at_completion),
    ("I7", ownership::i07_a_claim_is_strict_oldest_and_undisputed),
    ("I8", ownership::i08_a_claim_is_never_revoked),
    ("I9", evidence::i09_failed_reads_prove_nothing),
    ("I10", ownership::i10_every_order_is_accounted_for),
    ("I11", ownership::i11_what_is_too_much_is_told_once),
    ("I12", surface::i12_nothing_is_ever_cancelled),
    ("I13", sends::i13_one_name_one_order),
    ("I14", sends::i14_a_caller_that_leaves_stops_resends_only),
    ("I15", sends::i15_a_restart_sends_nothing),
    ("I16", evidence::i16_time_never_runs_backwards),
    ("I17", evidence::i17_a_new_day_or_session_proves_no_absence),
    ("I18", surface::i18_reads_keep_their_distance),
    ("I19", surface::i19_other_traffic_is_untouched),
    ("I20", sends::i20_every_order_ends_once_and_in_time),
    ("I21", surface::i21_doubt_is_told_in_full),
    ("I22", surface::i22_accounts_share_nothing),
    ("I23", unlisted::i23_an_unlisted_order_is_told_in_time),
    ("I24", other_form::i24_an_order_of_another_quantity_is_told_in_time),
];

/// Returns all violations of a run.
#[must_use]
pub fn violations(run: &Run) -> Vec<String> {
    let broken = ALL.iter().filter_map(|(name, check)| Some((name, check(run).err()?)));
    broken.map(|(name, what)| format!("{name}: {what}")).collect()
}
