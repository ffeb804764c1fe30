use std::fmt::Display;
use std::io::{self, Write as _};

/// Prints one line on stdout at once.
///
/// A reader that has gone away (`cargo xtask ci | head`) is no reason to stop a run half-way.
#[cfg(not(test))]
pub(crate) fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Prints one line where the test harness can hold it back, which it cannot with a direct write.
#[cfg(test)]
pub(crate) fn say(line: impl Display) {
    println!("{line}");
}

/// Prints one line on stderr: for what is said instead of a run.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
