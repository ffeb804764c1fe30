//! Standard output, to which every verb writes its data. This module knows whether all of it has arrived.
//!
//! Scripts use the exit code. If data is lost, it is not 0, and a message says what has been done nevertheless.

use std::{
    fmt,
    io::{self, Write},
};

use parking_lot::Mutex;

use crate::{
    exit::{Failed, print_note},
    readable::Readable,
};

static OUTPUT: Mutex<Output> = Mutex::new(Output { failed: None, done: None });

/// The state of the output so far.
struct Output {
    /// The first write that failed.
    failed: Option<io::Error>,
    /// A statement that holds even if the result is lost.
    done: Option<String>,
}

/// Prints a line of data.
pub(crate) fn print_line(line: impl fmt::Display) {
    // The failure is kept and reported in the end.
    let _ = Stdout.write_all(format!("{}\n", Readable(line)).as_bytes());
}

/// Prints a requested secret unmasked, on a line of its own.
pub(crate) fn print_secret(secret: &str) {
    // As above; in one piece, so that a part of a secret never looks complete.
    let _ = Stdout.write_all([secret.as_bytes(), b"\n"].concat().as_slice());
}

/// Keeps a failure to write to standard output by other means.
pub(crate) fn keep(written: io::Result<()>) {
    if let Err(error) = written {
        OUTPUT.lock().failed.get_or_insert(error);
    }
}

/// Sets a statement of what has been done, in case its result cannot be printed.
pub(crate) fn done(what: impl fmt::Display) {
    OUTPUT.lock().done = Some(what.to_string());
}

/// Returns the first write that failed, for a verb that reports it by itself.
pub(crate) fn take_failure() -> Option<io::Error> {
    OUTPUT.lock().failed.take()
}

/// Returns the end of a verb, which is a failure if data was lost. A failure of the verb itself stays.
///
/// If the reader has gone and nothing but printing was done, the program ends as others do: without a message, and with
/// the exit code of SIGPIPE.
pub(crate) fn settle(ended: Result<(), Failed>) -> Result<(), Failed> {
    let (failed, done) = {
        let mut output = OUTPUT.lock();
        (output.failed.take(), output.done.take())
    };
    let Some(error) = failed else { return ended };
    match done {
        None if error.kind() == io::ErrorKind::BrokenPipe => ended.and_then(|()| Err(Failed::unread())),
        done => {
            let done = done.map(|done| format!("; {done}")).unwrap_or_default();
            print_note(format_args!("steadfast: the result cannot be written: {error}{done}"));
            ended.and_then(|()| Err(Failed::already_said()))
        }
    }
}

/// Writes to standard output, without a buffer. The first failure is kept for [`settle`].
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(bytes).map_err(|error| {
            let failed = || io::Error::new(error.kind(), format!("standard output: {error}"));
            // The caller tries an interrupted write again.
            if error.kind() != io::ErrorKind::Interrupted {
                keep(Err(failed()));
            }
            failed()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes directly, because the standard library ignores a descriptor that cannot be written to.
#[cfg(unix)]
fn write(bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)
}

#[cfg(not(unix))]
fn write(bytes: &[u8]) -> io::Result<usize> {
    let mut stdout = io::stdout();
    let written = stdout.write(bytes)?;
    stdout.flush()?;
    Ok(written)
}

/// Returns true if standard output was closed before the start, and not redirected to the null device on purpose.
///
/// Before `main`, the runtime replaces a closed descriptor by the null device, opened to read and write. A user who
/// wants no output opens it to write only.
pub(crate) fn is_closed() -> bool {
    #[cfg(target_os = "linux")]
    {
        let leads_to = std::fs::read_link("/proc/self/fd/1");
        let info = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
        let flags =
            info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
        // O_RDWR is 2 in the two lowest bits on every Linux.
        leads_to.is_ok_and(|place| place.as_os_str() == "/dev/null")
            && flags.is_some_and(|flags| flags & 3 == 2)
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
