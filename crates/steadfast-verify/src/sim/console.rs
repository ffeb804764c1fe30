use std::{
    fmt,
    io::{self, Write},
};

/// Prints a line for the person who waits, on standard error and so apart from the figures.
pub fn complain(line: fmt::Arguments<'_>) {
    // If standard error is closed, there is no other place to report it.
    let _ = writeln!(io::stderr().lock(), "{line}");
}
