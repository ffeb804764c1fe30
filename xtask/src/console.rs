use std::fmt::Display;
use std::io::{self, Write as _};

/// Prints one line at once.
///
/// A reader that has gone away (`cargo xtask ci | head`) is no reason to stop a run half-way.
pub(crate) fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Says once more what failed, where it is found: at the end. `.ci/run` repeats it from the first line on.
pub(crate) fn tell(failures: &[String]) {
    if !failures.is_empty() {
        say(format_args!("\n=== what failed ===\n{}\n", failures.join("\n\n")));
    }
}
