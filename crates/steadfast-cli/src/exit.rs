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

    /// There is no token, and somebody has to log in.
    pub(crate) fn login_needed(message: impl fmt::Display) -> Self {
        Self { code: 3, message: message.to_string() }
    }

    /// Logins have stopped so that the account is not locked.
    pub(crate) fn latched(message: impl fmt::Display) -> Self {
        Self { code: 4, message: message.to_string() }
    }

    /// The service asks to come back later.
    pub(crate) fn rate_limited(message: impl fmt::Display) -> Self {
        Self { code: 5, message: message.to_string() }
    }

    /// The service cannot be reached, or does not answer as it should.
    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self { code: 7, message: message.to_string() }
    }

    /// Nobody knows what became of an order: it must be looked for before it is placed again.
    pub(crate) fn outcome_unknown() -> Self {
        Self { code: 6, message: String::new() }
    }

    /// Somebody asked for the end.
    pub(crate) fn interrupted(message: impl fmt::Display) -> Self {
        Self { code: 130, message: message.to_string() }
    }

    /// What went wrong has been said line by line.
    pub(crate) fn already_said() -> Self {
        Self { code: 1, message: String::new() }
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Prints a failure to standard error.
pub(crate) fn say(failed: &Failed) {
    if !failed.message.is_empty() {
        print_note(format_args!("steadfast: {}", failed.message));
    }
}

/// Prints a line of data. A closed pipe ends the output, not the command.
pub(crate) fn print_line(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a line for a person to standard error.
pub(crate) fn print_note(line: impl fmt::Display) {
    // Nobody is left to tell if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
