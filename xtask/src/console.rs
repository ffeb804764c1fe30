use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set while stdout belongs to data.
static STDOUT_IS_DATA: AtomicBool = AtomicBool::new(false);

/// From now on everything is said on stderr, except [`data`].
pub(crate) fn keep_stdout_for_data() {
    STDOUT_IS_DATA.store(true, Ordering::Relaxed);
}

/// Prints what a program may read, on stdout.
pub(crate) fn data(text: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints one line on stdout at once.
///
/// A reader that has gone away (`cargo xtask ci | head`) is no reason to stop a run half-way.
pub(crate) fn say(line: impl Display) {
    if STDOUT_IS_DATA.load(Ordering::Relaxed) {
        return complain(line);
    }
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Prints one line on stderr.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
