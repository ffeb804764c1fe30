use std::{env, error::Error, fmt, fs::File, io::Read, process, sync::Arc};

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use secrecy::{ExposeSecret, SecretSlice, SecretString};

/// The key that seals a token's record, so that the store itself never holds a token that can be read.
///
/// 32 random bytes, the same in all processes of the account. XChaCha20-Poly1305 seals the record, with its place and
/// revision, under a random nonce.
///
/// # Example
///
/// ```
/// use steadfast_redis::Seal;
///
/// let seal = Seal::of_text("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")?;
/// assert_eq!(format!("{seal:?}"), "Seal([REDACTED])");
/// assert!(Seal::of_text("too short").is_err());
/// # Ok::<(), steadfast_redis::InvalidSeal>(())
/// ```
///
/// # Clone
///
/// Clones hold the same key.
#[derive(Clone)]
pub struct Seal(Arc<Sealer>);

struct Sealer {
    cipher: XChaCha20Poly1305,
    /// Tells a record of another key from a damaged one.
    name: [u8; NAME],
}

/// The key cannot be read.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSeal {
    /// It is not 32 bytes in hexadecimal digits or base64.
    Key,
    /// The file cannot be read.
    File,
    /// The command cannot be run, or failed.
    Command,
}

/// Why sealed bytes cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// With another key.
    Otherwise,
    /// They are damaged, or of another place or revision.
    Damaged,
}

const KEY: usize = 32;
const NAME: usize = 8;
const NONCE: usize = 24;
/// The largest file and output that are read.
const LARGEST: u64 = 4_096;

impl Seal {
    /// The variable that holds the key.
    pub const VARIABLE: &str = "STEADFAST_SEAL_KEY";
    /// The variable that names a file with the key.
    pub const FILE_VARIABLE: &str = "STEADFAST_SEAL_KEY_FILE";
    /// The variable with a command that prints the key.
    pub const COMMAND_VARIABLE: &str = "STEADFAST_SEAL_KEY_COMMAND";

    /// Takes a key of 64 hexadecimal digits, or in base64.
    ///
    /// # Errors
    ///
    /// [`InvalidSeal::Key`], which does not show the text.
    pub fn of_text(text: impl Into<SecretString>) -> Result<Self, InvalidSeal> {
        let text = text.into();
        let text = text.expose_secret().trim().as_bytes();
        let key = if text.len() == 2 * KEY { HEXLOWER_PERMISSIVE.decode(text) } else { BASE64.decode(text) };
        let key: SecretSlice<u8> = key.map_err(|_| InvalidSeal::Key)?.into();
        let cipher = XChaCha20Poly1305::new_from_slice(key.expose_secret()).map_err(|_| InvalidSeal::Key)?;
        // A tag over nothing, under a nonce that seals nothing else.
        let nothing = Payload { msg: &[], aad: b"steadfast: the name of a key" };
        let tag = cipher.encrypt(&XNonce::from([0; NONCE]), nothing).map_err(|_| InvalidSeal::Key)?;
        let mut name = [0; NAME];
        name.copy_from_slice(tag.get(..NAME).ok_or(InvalidSeal::Key)?);
        Ok(Self(Arc::new(Sealer { cipher, name })))
    }

    /// Takes the key from the environment: from [`VARIABLE`](Self::VARIABLE), else from the file that
    /// [`FILE_VARIABLE`](Self::FILE_VARIABLE) names, else from the first line that the command of
    /// [`COMMAND_VARIABLE`](Self::COMMAND_VARIABLE) prints. `None` if none of them is set.
    ///
    /// Waits for the command. Call it at the start of the program.
    ///
    /// # Errors
    ///
    /// [`InvalidSeal`], which shows neither the key nor the command.
    pub fn of_environment() -> Result<Option<Self>, InvalidSeal> {
        let set = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
        if let Some(text) = set(Self::VARIABLE) {
            return Self::of_text(text).map(Some);
        }
        if let Some(path) = set(Self::FILE_VARIABLE) {
            let file = File::open(path).map_err(|_| InvalidSeal::File)?;
            return Self::of_text(first_line(file).map_err(|()| InvalidSeal::File)?).map(Some);
        }
        let Some(command) = set(Self::COMMAND_VARIABLE) else { return Ok(None) };
        Self::of_text(printed_by(&command).map_err(|()| InvalidSeal::Command)?).map(Some)
    }

    /// Seals `open`, so that it can be opened only as being of `place`.
    pub(crate) fn seal(&self, open: &[u8], place: &str) -> Result<Vec<u8>, getrandom::Error> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce)?;
        let Sealer { cipher, name } = &*self.0;
        let payload = Payload { msg: open, aad: place.as_bytes() };
        // It fails only for records of many gigabytes.
        let sealed =
            cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| getrandom::Error::UNEXPECTED)?;
        Ok([&name[..], &nonce, &sealed].concat())
    }

    /// Opens what [`seal`](Self::seal) made.
    pub(crate) fn open(&self, sealed: &[u8], place: &str) -> Result<SecretSlice<u8>, Sealed> {
        let (name, rest) = sealed.split_first_chunk::<NAME>().ok_or(Sealed::Damaged)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>().ok_or(Sealed::Damaged)?;
        if *name != self.0.name {
            return Err(Sealed::Otherwise);
        }
        let payload = Payload { msg: sealed, aad: place.as_bytes() };
        let open = self.0.cipher.decrypt(&XNonce::from(*nonce), payload);
        open.map(Into::into).map_err(|_| Sealed::Damaged)
    }
}

fn first_line(from: impl Read) -> Result<SecretString, ()> {
    let mut text = String::new();
    let read = from.take(LARGEST).read_to_string(&mut text);
    let text = SecretString::from(text);
    read.map_err(|_| ())?;
    Ok(text.expose_secret().lines().next().unwrap_or_default().to_owned().into())
}

/// Runs a command of the program's own environment, by the system's shell.
fn printed_by(command: &str) -> Result<SecretString, ()> {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = {
        let mut with_shell = process::Command::new(shell);
        with_shell.args([option, command]).stdin(process::Stdio::null()).stdout(process::Stdio::piped());
        with_shell.spawn().map_err(|_| ())?
    };
    let line = command.stdout.take().ok_or(()).and_then(first_line);
    let ended = command.wait().map_err(|_| ())?;
    if ended.success() { line } else { Err(()) }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal([REDACTED])")
    }
}

impl fmt::Display for InvalidSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "seal key is not 32 bytes in hexadecimal digits or base64",
            Self::File => "seal key's file cannot be read",
            Self::Command => "seal key's command failed",
        })
    }
}

steadfast_call::debug_in_one_line!(InvalidSeal);

impl Error for InvalidSeal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(byte: u8) -> Seal {
        Seal::of_text(BASE64.encode(&[byte; KEY])).unwrap()
    }

    #[test]
    fn what_is_sealed_is_opened_by_its_key_at_its_place_alone() {
        let sealed = seal(1).seal(b"canary-token", "a/7").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"canary"));
        assert_eq!(seal(1).open(&sealed, "a/7").unwrap().expose_secret(), b"canary-token");
        assert_eq!(seal(1).open(&sealed, "a/8").unwrap_err(), Sealed::Damaged);
        assert_eq!(seal(2).open(&sealed, "a/7").unwrap_err(), Sealed::Otherwise);
        for end in 0..sealed.len() {
            assert!(seal(1).open(&sealed[..end], "a/7").is_err(), "cut at {end}");
            let mut changed = sealed.clone();
            changed[end] ^= 1;
            assert!(seal(1).open(&changed, "a/7").is_err(), "changed at {end}");
        }
        assert_ne!(sealed, seal(1).seal(b"canary-token", "a/7").unwrap(), "each time under another nonce");
    }

    #[test]
    fn a_key_comes_from_a_file_or_a_command_too_and_is_not_shown() {
        let text = BASE64.encode(&[7; KEY]);
        let line = first_line(format!("{text}\nmore\n").as_bytes()).unwrap();
        assert_eq!(line.expose_secret(), text);
        assert_eq!(printed_by(&format!("echo {text}")).unwrap().expose_secret(), text);
        assert!(printed_by("exit 3").is_err() && printed_by("no-such-command-at-all").is_err());
        assert!(Seal::of_text(line).is_ok());
        let error = Seal::of_text("canary").unwrap_err();
        assert!(!format!("{error} {error:?} {:?}", seal(7)).contains("canary"));
    }
}
