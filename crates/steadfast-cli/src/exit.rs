use std::{fmt, io::Write, process::ExitCode};

/// Why a verb ended otherwise than well: the message for a person and the code for a script.
#[derive(Debug)]
pub(crate) struct Failed {
    code: u8,
    message: String,
}

impl Failed {
    /// Something went wrong.
    pub(crate) fn error(message: impl fmt::Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

/// Prints a failure to standard error.
pub(crate) fn say(failed: &Failed) {
    // Nobody is left to tell if standard error is closed.
    let _ = writeln!(std::io::stderr(), "steadfast: {}", failed.message);
}

/// Prints a line of data. A closed pipe ends the output, not the command.
pub(crate) fn print_line(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
