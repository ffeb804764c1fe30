//! Secrets from the environment, systemd, the config file, a file, a command or a person; never from an argument, which
//! every process can read.

use std::{
    env, fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::Stdio,
};

use console::Term;
use secrecy::SecretString;
use tokio::process::Command;

use crate::{config, exit::Failed, readable};

/// The prefix of every variable that this command reads.
pub(crate) const PREFIX: &str = "STEADFAST_";

/// Returns a secret such as `API_KEY`, of the first of these that has it; `None` if none has:
///
/// 1. the environment: `STEADFAST_<NAME>`, the file that `STEADFAST_<NAME>_FILE` names, the output of the command in
///    `STEADFAST_<NAME>_COMMAND`
/// 2. the credential of that name, as in `api-key`, that systemd has loaded for this unit
/// 3. the config file, by the same three ways
///
/// The value is masked in everything that this process writes from then on.
pub(crate) async fn find(name: &str) -> Result<Option<SecretString>, Failed> {
    let Some(Given { by, form }) = given(name)? else { return Ok(None) };
    let secret = match form {
        Form::Value(value) => value,
        Form::File(path) => held_by(&path, &by)?,
        Form::Command(command) => printed_by(&command, &by).await?,
    };
    if !SHOWN.contains(&name) {
        readable::hide(&secret);
    }
    Ok(Some(secret))
}

/// Returns where a secret comes from; `None` if it is not given. No file is read for it, and no command is run.
pub(crate) fn origin(name: &str) -> Result<Option<String>, Failed> {
    Ok(given(name)?.map(|given| given.by))
}

/// Reads every secret that a file gives, and returns by what it is given, and whether it can be read. No command is run.
pub(crate) fn files() -> Vec<(String, Result<(), Failed>)> {
    let read = |name: &&str| match given(&name.to_uppercase().replace('-', "_")) {
        Ok(Some(Given { by, form: Form::File(path) })) => {
            let read = held_by(&path, &by).map(drop);
            Some((by, read))
        }
        Ok(_) => None,
        Err(failed) => Some(((*name).to_owned(), Err(failed))),
    };
    config::SECRETS.iter().filter_map(read).collect()
}

fn held_by(path: &Path, by: &str) -> Result<SecretString, Failed> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(by, path, &error))?;
    line_of(&text, by)
}

/// The variables that are not secret: the user, the address for the browser, and that of the shared store, but for its
/// password.
const SHOWN: [&str; 3] = ["CLIENT_ID", "REDIRECT_URI", "REDIS_URL"];

/// How a secret is given, and by whom.
struct Given {
    by: String,
    form: Form,
}

enum Form {
    Value(SecretString),
    File(PathBuf),
    Command(String),
}

impl Form {
    /// Reads a form by the last part of its name, as in `_FILE`.
    fn of(part: &str, text: String) -> Self {
        match part {
            "_FILE" | "-file" => Self::File(text.into()),
            "_COMMAND" | "-command" => Self::Command(text),
            _ => Self::Value(text.into()),
        }
    }
}

/// Reports a file that cannot be read. Its name is not shown if there is no such file: it may be the secret, given in place of a
/// file's name.
fn unreadable(by: &str, path: &Path, error: &std::io::Error) -> Failed {
    if fs::symlink_metadata(path).is_ok() {
        return Failed::usage(format_args!("{by}: {}: {error}", path.display()));
    }
    Failed::usage(format_args!(
        "{by} names no file that can be read; it takes the name of a file that holds the secret, and not the secret"
    ))
}

fn given(name: &str) -> Result<Option<Given>, Failed> {
    for part in ["", "_FILE", "_COMMAND"] {
        let by = format!("{PREFIX}{name}{part}");
        if let Some(text) = variable_of(&by)? {
            return Ok(Some(Given { by, form: Form::of(part, text) }));
        }
    }
    let key = name.to_lowercase().replace('_', "-");
    if let Some(folder) = variable_of("CREDENTIALS_DIRECTORY")? {
        let path = Path::new(&folder).join(&key);
        if path.exists() {
            return Ok(Some(Given { by: format!("credential {key}"), form: Form::File(path) }));
        }
    }
    let Some(file) = config::file() else { return Ok(None) };
    Ok(file.secret(&key).map(|(part, entry)| {
        let by = format!("{}: {}", file.place(entry), entry.key.name);
        Given { by, form: Form::of(part, entry.text().to_owned()) }
    }))
}

/// Returns the command that prints a one-time code, and where it comes from.
pub(crate) fn code_command() -> Result<Option<(String, String)>, Failed> {
    let variable = format!("{PREFIX}OTP_COMMAND");
    if let Some(command) = variable_of(&variable)? {
        return Ok(Some((command, variable)));
    }
    let of_file = config::file().and_then(|file| Some((file, file.entry("", "otp-command")?)));
    Ok(of_file.map(|(file, entry)| (entry.text().to_owned(), format!("{}: otp-command", file.place(entry)))))
}

/// As [`find`]; if none is set, a person at the terminal is asked.
pub(crate) async fn find_or_ask(name: &str, prompt: &str) -> Result<SecretString, Failed> {
    if let Some(secret) = find(name).await? {
        return Ok(secret);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failed::usage(format_args!(
            "{PREFIX}{name} is not set, nor {PREFIX}{name}_FILE or {PREFIX}{name}_COMMAND; see --help"
        )));
    }
    let typed = ask(prompt).await.map_err(Failed::error)?;
    if !SHOWN.contains(&name) {
        readable::hide(&typed);
    }
    Ok(typed)
}

/// Asks a person, without echo.
pub(crate) async fn ask(prompt: &str) -> std::io::Result<SecretString> {
    let prompt = format!("{prompt}: ");
    let _shown_again = Echo::found();
    let typed = tokio::task::spawn_blocking(move || {
        let terminal = Term::stderr();
        terminal.write_str(&prompt)?;
        terminal.read_secure_line()
    });
    let typed = typed.await.map_err(std::io::Error::other)??;
    Ok(typed.trim().into())
}

/// The terminal's state before a hidden prompt. It is restored on drop, so that a user who interrupts the prompt sees
/// his input in the shell.
#[cfg(unix)]
struct Echo(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Echo {
    fn found() -> Self {
        Self(rustix::termios::tcgetattr(rustix::stdio::stdin()).ok())
    }
}

#[cfg(unix)]
impl Drop for Echo {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(found) = &self.0 {
            // The terminal may be gone by now.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, found);
        }
    }
}

#[cfg(not(unix))]
struct Echo;

#[cfg(not(unix))]
impl Echo {
    fn found() -> Self {
        Self
    }
}

/// Returns a variable's text; an empty one counts as unset.
pub(crate) fn variable_of(name: &str) -> Result<Option<String>, Failed> {
    match env::var(name) {
        Ok(value) if value.is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => Err(Failed::usage(format_args!("{name} is not text"))),
    }
}

/// Runs a command of the user's. It gets none of the variables that may hold secrets.
pub(crate) async fn printed_by(command: &str, name: &str) -> Result<SecretString, Failed> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with(PREFIX) {
            shell.env_remove(variable);
        }
    }
    // Not `output`, which takes standard error as well: what a command says of its failure is for the user.
    let unusable = |error: std::io::Error| Failed::error(format_args!("{name}: {error}"));
    let child = shell.stdout(Stdio::piped()).spawn().map_err(unusable)?;
    let output = child.wait_with_output().await.map_err(unusable)?;
    if !output.status.success() {
        return Err(Failed::error(format_args!("{name} ended with {}", output.status)));
    }
    // The output may be the secret, so the error does not repeat it.
    let text = String::from_utf8(output.stdout)
        .map_err(|_| Failed::error(format_args!("{name} printed something that is not text")))?;
    line_of(&text, name)
}

fn line_of(text: &str, name: &str) -> Result<SecretString, Failed> {
    let line = text.trim();
    if line.is_empty() || line.contains('\n') {
        return Err(Failed::usage(format_args!("{name} holds no secret of one line")));
    }
    Ok(line.into())
}
