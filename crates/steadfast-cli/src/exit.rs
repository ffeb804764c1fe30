use std::{fmt, io::Write, process::ExitCode};

use crate::readable::Readable;

/// The exit codes, for the command's help.
pub(crate) const CODES: &str = "\
Exit codes:
  0    done
  1    error, or a row was bad, refused or rejected
  2    usage: the command line, a file or a setting cannot be used; nothing was sent
  3    login needed
  4    logins are latched, so that the account is not locked
  5    rate limited
  6    outcome unknown: an order must be looked for before it is placed again, or an event wants a look
  7    service unavailable
  130  interrupted
  141  the output was not read to its end
Where several hold for rows of a file, the first of 6, 130, 4, 3, 7, 5 and 1 counts.

STEADFAST_LOG=debug (or any filter of tracing) writes a log to standard error.";

/// The failure of a verb: a message for a person and an exit code for a script.
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

    /// The command line is invalid.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// There is no token, and a person has to log in.
    pub(crate) fn login_needed(message: impl fmt::Display) -> Self {
        Self { code: 3, message: message.to_string() }
    }

    /// Logins have stopped so that the account is not locked.
    pub(crate) fn latched(message: impl fmt::Display) -> Self {
        Self { code: 4, message: message.to_string() }
    }

    /// The service's quota is used up; try again later.
    pub(crate) fn rate_limited(message: impl fmt::Display) -> Self {
        Self { code: 5, message: message.to_string() }
    }

    /// The service cannot be reached, or its answers are not as specified.
    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self { code: 7, message: message.to_string() }
    }

    /// It is not known what became of an order: look for it before placing it again.
    pub(crate) fn outcome_unknown() -> Self {
        Self { code: 6, message: String::new() }
    }

    /// The user asked for the end.
    pub(crate) fn interrupted(message: impl fmt::Display) -> Self {
        Self { code: 130, message: message.to_string() }
    }

    /// The reader of the output has gone: same code as if SIGPIPE had ended the program.
    pub(crate) fn unread() -> Self {
        Self { code: 141, message: String::new() }
    }

    /// The program that was run has failed, and has said why.
    pub(crate) fn as_program(code: u8) -> Self {
        Self { code, message: String::new() }
    }

    /// The errors were printed line by line already.
    pub(crate) fn already_said() -> Self {
        Self { code: 1, message: String::new() }
    }

    /// Marks a run that had not begun, so that the user need not look for orders.
    pub(crate) fn before_any_order(mut self) -> Self {
        const NOTHING: &str = "nothing was sent";
        if !self.message.is_empty() && !self.message.contains(NOTHING) {
            self.message = format!("{}; {NOTHING}", self.message);
        }
        self
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

/// Prints an address for a person to open, unmasked, because the API key is part of it (§4.2).
pub(crate) fn print_address(text: impl fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a line for a person to standard error.
pub(crate) fn print_note(line: impl fmt::Display) {
    // If standard error is closed, the message has no reader.
    let _ = writeln!(std::io::stderr(), "{}", Readable(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c09_the_help_names_every_code_that_a_verb_ends_with() {
        let all = [
            Failed::error(""),
            Failed::usage(""),
            Failed::login_needed(""),
            Failed::latched(""),
            Failed::rate_limited(""),
            Failed::outcome_unknown(),
            Failed::unavailable(""),
            Failed::interrupted(""),
            Failed::unread(),
        ];
        let told: Vec<u8> = CODES
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split_once(' ')?.0.parse::<u8>().ok())
            .collect();
        let codes: Vec<u8> = std::iter::once(0).chain(all.iter().map(|failed| failed.code)).collect();
        assert_eq!(told, codes);
    }
}
