use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::stopwatch::Stopwatch;

/// How long a process may take to end after it was killed, and its pipes to drain after it ended.
const GRACE: Duration = Duration::from_secs(12);

/// How a process ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Exited(ExitStatus),
    OverTime(Duration),
}

impl Ending {
    /// Returns why this is a failure, or `None` if the process succeeded.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Exited(status) if status.success() => None,
            Self::Exited(status) => Some(status.to_string()),
            Self::OverTime(limit) => Some(format!("over its time box of {} s", limit.as_secs())),
        }
    }
}

enum Event {
    Line(String),
    Exited(io::Result<ExitStatus>),
}

/// Runs `command` without stdin and shows every line of both of its pipes to `each`, as it comes.
///
/// With a `limit`, the process and all its children are ended once it is over.
pub(crate) fn stream(
    command: &mut Command,
    limit: Option<Duration>,
    mut each: impl FnMut(&str),
) -> Result<Ending> {
    #[cfg(unix)]
    if limit.is_some() {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
    let (pid, incoming) = start(command)?;
    let clock = Stopwatch::start();
    let mut deadline = limit.unwrap_or(Duration::MAX);
    let (mut over_time, mut exited) = (None, None);
    loop {
        let left = deadline.saturating_sub(clock.elapsed());
        // Of a process that never stops writing, a line is always there.
        let event = if left.is_zero() { Err(RecvTimeoutError::Timeout) } else { incoming.recv_timeout(left) };
        match event {
            Ok(Event::Line(line)) => each(&line),
            Ok(Event::Exited(status)) => {
                exited = Some(status?);
                deadline = clock.elapsed() + GRACE;
            }
            // A grandchild that keeps the pipes open must not keep us.
            Err(RecvTimeoutError::Timeout) if exited.is_some() || over_time.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {
                over_time = limit;
                kill_group(pid);
                deadline += GRACE;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = exited.context("a process does not end, not even when killed")?;
    Ok(over_time.map_or(Ending::Exited(status), Ending::OverTime))
}

/// Starts the process, with a thread for each of its pipes and one for its end.
fn start(command: &mut Command) -> Result<(u32, Receiver<Event>)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{}` did not start", command.get_program().display()))?;
    let pid = child.id();
    let (events, incoming) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        forward(out, events.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, events.clone());
    }
    thread::spawn(move || {
        let _ = events.send(Event::Exited(child.wait()));
    });
    Ok((pid, incoming))
}

fn forward(from: impl Read + Send + 'static, events: Sender<Event>) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line);
            if events.send(Event::Line(text.trim_end_matches(['\r', '\n']).to_owned())).is_err() {
                return;
            }
            line.clear();
        }
    });
}

fn kill_group(pid: u32) {
    let mut kill = if cfg!(unix) { Command::new("sh") } else { Command::new("taskkill") };
    let _ = match cfg!(unix) {
        true => kill.arg("-c").arg(format!("kill -s KILL -- -{pid}")),
        false => kill.args(["/T", "/F", "/PID"]).arg(pid.to_string()),
    }
    .status();
}

/// A shell that runs this script.
#[cfg(all(test, unix))]
pub(crate) fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_pipes_are_seen_and_a_failure_names_its_exit_code() {
        let mut lines = Vec::new();
        let ending =
            stream(&mut shell("echo one; echo two >&2; exit 3"), None, |line| lines.push(line.to_owned()));
        assert!(ending.unwrap().failure().unwrap().contains('3'));
        lines.sort();
        assert_eq!(lines, ["one", "two"]);
    }

    #[test]
    fn a_process_over_its_time_box_is_ended_with_its_children() {
        let clock = Stopwatch::start();
        // The grandchild holds the pipe: had it survived, the run would drain for the whole grace.
        let ending = stream(&mut shell("sleep 60 & wait"), Some(Duration::from_millis(50)), |_| {}).unwrap();
        assert_eq!(ending.failure().unwrap(), "over its time box of 0 s");
        assert!(clock.elapsed() < GRACE);
    }
}
