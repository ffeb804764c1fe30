//! Standard output, to which every verb writes its data: the one place that knows whether all of it has arrived.
//!
//! A script goes by the exit code. Where data is lost, it is not 0, and what has been done all the same is said.

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

/// What has become of the output so far.
struct Output {
    /// The first write that failed.
    failed: Option<io::Error>,
    /// What holds whatever becomes of the result.
    done: Option<String>,
}

/// Prints a line of data.
pub(crate) fn print_line(line: impl fmt::Display) {
    // That it failed is kept, and told in the end.
    let _ = Stdout.write_all(format!("{}\n", Readable(line)).as_bytes());
}

/// Prints a secret that was asked for, on a line of its own and as it is.
pub(crate) fn print_secret(secret: &str) {
    // As above; in one piece, so that no half of a secret looks like a whole one.
    let _ = Stdout.write_all([secret.as_bytes(), b"\n"].concat().as_slice());
}

/// Keeps the failure of whoever has written to standard output by other means.
pub(crate) fn keep(written: io::Result<()>) {
    if let Err(error) = written {
        OUTPUT.lock().failed.get_or_insert(error);
    }
}

/// Says what has been done, in case that its result cannot be told.
pub(crate) fn done(what: impl fmt::Display) {
    OUTPUT.lock().done = Some(what.to_string());
}

/// The first write that failed, for a verb that tells of it by itself.
pub(crate) fn take_failure() -> Option<io::Error> {
    OUTPUT.lock().failed.take()
}

/// The end of a verb, which is no good one where data was lost; a failure of its own stays what it is.
///
/// A reader that has gone has read enough, as far as nothing was done but to tell him: that ends as with other programs, without
/// a word and with the code of their signal.
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
            // Whoever writes tries that once more.
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

/// The standard library takes a descriptor that cannot be written to for one that takes all.
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

/// True if standard output leads nowhere and nobody seems to have wanted that: it was closed.
///
/// Before this program's first line, its runtime opens the null device in the place of what is closed, to read and to write.
/// Whoever wants no output opens it to write.
pub(crate) fn is_closed() -> bool {
    #[cfg(target_os = "linux")]
    {
        let leads_to = std::fs::read_link("/proc/self/fd/1");
        let info = std::fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default();
        let flags =
            info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
        // O_RDWR is 2 of the two lowest bits on every Linux.
        leads_to.is_ok_and(|place| place.as_os_str() == "/dev/null")
            && flags.is_some_and(|flags| flags & 3 == 2)
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
