//! One sidecar for an account on a machine, whatever the user, folders and variables of the two.
//!
//! A sidecar holds a socket of Linux' abstract namespace as long as it lives. The kernel frees the name when the process
//! ends, however it ends. The name tells the account by hashes, of which the first covers the service's address and the
//! API key, and the second the user as well. All users of the machine see it (`ss -xl`): a key is long and random, so
//! that it cannot be guessed from twelve hexadecimal digits.
//!
//! A network namespace has names of its own, so sidecars of two containers do not see each other.

use std::{
    fs,
    io::{self, ErrorKind},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
};

use steadfast::auth::Identity;

use crate::{
    account::Account,
    exit::{Failed, print_note},
};

const PREFIX: &str = "steadfast-sidecar/";
/// Stands for a user that is not known.
const NOBODY: &str = "-";
/// The kernel's list of the sockets of this network namespace.
const SOCKETS: &str = "/proc/self/net/unix";

const REFUSED: &str = "another sidecar of this account runs on this machine; nothing was sent: end it first (as root, `ss -xlp` \
names the process that holds @steadfast-sidecar/), or, if it serves another user of the same API key, start both with their \
STEADFAST_CLIENT_ID";

/// Keeps another sidecar of the account from starting on this machine as long as it lives.
pub(super) struct Presence(
    #[expect(dead_code, reason = "the open socket holds the name")] Option<UnixDatagram>,
);

impl Presence {
    pub(super) fn of(account: &Account) -> Result<Self, Failed> {
        let own = Name::of(account);
        // The own name first: of two that start at once, one at least sees the other.
        let socket = match bind(&own) {
            Ok(socket) => socket,
            Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(Failed::usage(REFUSED)),
            Err(error) => return Ok(Self::unseen(None, &error)),
        };
        let sockets = match fs::read_to_string(SOCKETS) {
            Ok(sockets) => sockets,
            Err(error) => return Ok(Self::unseen(Some(socket), &error)),
        };
        match names_in(&sockets).any(|other| other != own && other.may_be_of(&own)) {
            true => Err(Failed::usage(REFUSED)),
            false => Ok(Self(Some(socket))),
        }
    }

    fn unseen(socket: Option<UnixDatagram>, error: &io::Error) -> Self {
        print_note(format_args!(
            "steadfast: a second sidecar of this account may not be noticed on this machine: {error}"
        ));
        Self(socket)
    }
}

fn bind(name: &Name) -> io::Result<UnixDatagram> {
    let name = format!("{PREFIX}{}/{}", name.key, name.user.as_deref().unwrap_or(NOBODY));
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// An account as a socket names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    /// The service's address and the API key.
    key: String,
    /// Both and the user; `None` if that is not known.
    user: Option<String>,
}

impl Name {
    fn of(account: &Account) -> Self {
        let nobody = Identity::new(&account.base.to_string(), &account.api_key, "");
        let own = account.identity();
        Self { key: nobody.label(), user: own.user_label().map(|_| own.label()) }
    }

    /// True if both may be of one account: with one key, and not of two users.
    fn may_be_of(&self, other: &Self) -> bool {
        let are_two_users = matches!((&self.user, &other.user), (Some(one), Some(two)) if one != two);
        self.key == other.key && !are_two_users
    }
}

/// Returns the accounts in the kernel's list, in which a line ends with `@` and the name.
fn names_in(sockets: &str) -> impl Iterator<Item = Name> {
    let name = |line: &str| {
        let (_, name) = line.split_once('@')?;
        let (key, user) = name.strip_prefix(PREFIX)?.split_once('/')?;
        Some(Name { key: key.to_owned(), user: (user != NOBODY).then(|| user.to_owned()) })
    };
    sockets.lines().filter_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: &str, user: Option<&str>) -> Name {
        Name { key: key.to_owned(), user: user.map(str::to_owned) }
    }

    #[test]
    fn an_account_is_one_key_unless_two_users_are_known() {
        let (nobody, alice, bob) = (name("a", None), name("a", Some("1")), name("a", Some("2")));
        assert!(nobody.may_be_of(&alice) && alice.may_be_of(&nobody) && alice.may_be_of(&alice));
        assert!(!alice.may_be_of(&bob) && !name("b", None).may_be_of(&alice));
    }

    #[test]
    fn the_kernels_list_is_read() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff8880: 00000002 00000000 00000000 0002 01 26523 @steadfast-sidecar/a/-\n\
            ffff8881: 00000002 00000000 00010000 0001 01 26524 /run/@x/steadfast-sidecar/a/1\n\
            ffff8882: 00000003 00000000 00000000 0001 03 26525\n\
            ffff8883: 00000002 00000000 00000000 0002 01 26526 @steadfast-sidecar/b/2\n";
        assert_eq!(names_in(sockets).collect::<Vec<_>>(), [name("a", None), name("b", Some("2"))]);
    }
}
