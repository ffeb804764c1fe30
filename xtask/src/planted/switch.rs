//! The switch between the planted bugs. In the copy it is `crates/steadfast-spec/src/planted.rs`, with the names of all bugs.

use std::{env, sync::OnceLock};

/// True if `STEADFAST_PLANTED` names this bug.
///
/// # Panics
///
/// If it names an unknown bug.
#[must_use]
pub fn is_on(bug: &str) -> bool {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = env::var("STEADFAST_PLANTED").ok().filter(|name| !name.is_empty())?;
        assert!(NAMES.contains(&&*name), "no bug is called {name:?}");
        Some(name)
    });
    chosen.as_deref() == Some(bug)
}
