//! The keys of a config file: the names of options, in tables named after their verbs.

use steadfast::limit::Zone;

/// The kind of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Text,
    Texts,
    Number,
    Switch,
    /// A text that is masked wherever it is shown, in a file that nobody else may read.
    Secret,
}

impl Kind {
    pub(super) fn wanted(self) -> &'static str {
        match self {
            Self::Text | Self::Secret => "a text in quotes",
            Self::Texts => "a list of texts in quotes",
            Self::Number => "a number from 0 on",
            Self::Switch => "true or false",
        }
    }
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The table; empty for the top of the file.
    pub(crate) table: &'static str,
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Key {
    /// True for a setting of a zone, which holds for every verb of an account.
    pub(crate) fn is_of_zone(&self) -> bool {
        self.table.starts_with("zones.")
    }

    /// True if its option names something of the real account. A sandbox uses none of them.
    pub(crate) fn is_of_account(&self) -> bool {
        matches!(self.name.as_str(), "base-url" | "store" | "journal" | "token-file")
    }
}

/// The tables below the top.
pub(super) const TABLES: [&str; 4] = ["login", "orders", "proxy", "replay"];

/// The options that a file may hold. What a run is asked to do, such as `--yes`, is said on its command line alone.
const OPTIONS: [(&str, &str, Kind); 22] = [
    ("", "base-url", Kind::Text),
    ("", "store", Kind::Text),
    ("", "log", Kind::Text),
    ("", "otp-command", Kind::Text),
    ("", "redis-ca", Kind::Text),
    ("login", "flow", Kind::Text),
    ("orders", "journal", Kind::Text),
    ("proxy", "journal", Kind::Text),
    ("proxy", "port", Kind::Number),
    ("proxy", "listen", Kind::Text),
    ("proxy", "admin-port", Kind::Number),
    ("proxy", "token-file", Kind::Text),
    ("proxy", "read-token-file", Kind::Text),
    ("proxy", "unsafe-listen", Kind::Text),
    ("proxy", "allow-host", Kind::Texts),
    ("proxy", "read-only", Kind::Switch),
    ("proxy", "never-resend", Kind::Switch),
    ("proxy", "refusal-lag", Kind::Number),
    ("proxy", "drain", Kind::Number),
    ("replay", "in-order", Kind::Switch),
    ("replay", "never-resend", Kind::Switch),
    ("replay", "refusal-lag", Kind::Number),
];

/// The tables of zones, and the zones that they change.
pub(super) const ZONE_TABLES: [(&str, Zone); 5] = [
    ("zones.api_key", Zone::API_KEY),
    ("zones.data", Zone::DATA),
    ("zones.general", Zone::GENERAL),
    ("zones.otp", Zone::OTP),
    ("zones.place_order", Zone::PLACE_ORDER),
];

/// The keys of each.
pub(super) const ZONE_KEYS: [(&str, Kind); 4] =
    [("headroom", Kind::Number), ("limits", Kind::Texts), ("profile", Kind::Text), ("settle", Kind::Text)];

/// The values of `STEADFAST_` variables, by the names of the keys. The first two are no secrets.
pub(crate) const SECRETS: [&str; 9] = [
    "client-id",
    "redirect-uri",
    "api-key",
    "access-token",
    "password",
    "totp-secret",
    "client-secret",
    "redis-url",
    "seal-key",
];

/// How a secret may be given: by itself, by a file that holds it, by a command that prints it.
pub(crate) const FORMS: [&str; 3] = ["", "-file", "-command"];

/// Returns the keys of a table.
pub(crate) fn of_table(table: &str) -> Vec<Key> {
    if let Some((zone, _)) = ZONE_TABLES.into_iter().find(|(zone, _)| *zone == table) {
        let keys = ZONE_KEYS.into_iter();
        return keys.map(|(name, kind)| Key { table: zone, name: name.to_owned(), kind }).collect();
    }
    let options = OPTIONS.iter().filter(|(of, ..)| *of == table);
    let mut keys: Vec<Key> =
        options.map(|&(table, name, kind)| Key { table, name: name.to_owned(), kind }).collect();
    if table.is_empty() {
        for (index, secret) in SECRETS.iter().enumerate() {
            keys.extend(FORMS.iter().map(|form| {
                let kind = if index < 2 || !form.is_empty() { Kind::Text } else { Kind::Secret };
                Key { table: "", name: format!("{secret}{form}"), kind }
            }));
        }
    }
    keys
}

/// Returns the table of a verb's own options, empty if it has none; `None` for a verb without a config file.
pub(super) fn own_table(verb: &[&str]) -> Option<&'static str> {
    match verb {
        ["auth", "help"] | ["orders", "help"] => None,
        ["auth", _] | ["doctor"] => Some(""),
        ["login"] => Some("login"),
        ["orders", _] => Some("orders"),
        ["exec" | "proxy"] => Some("proxy"),
        ["replay"] => Some("replay"),
        _ => None,
    }
}

/// Returns a verb that has the options of a table.
pub(super) fn verb_of(table: &str) -> &'static [&'static str] {
    match table {
        "login" => &["login"],
        "orders" => &["orders", "verify"],
        "proxy" => &["proxy"],
        "replay" => &["replay"],
        _ => &["doctor"],
    }
}

/// Returns the name that was probably meant.
pub(super) fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase().replace('_', "-");
    let near = names.into_iter().map(|name| (strsim::damerau_levenshtein(&given, name), name));
    near.min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found_and_no_other() {
        let names = || ["port", "admin-port", "drain", "read-token-file"];
        assert_eq!(nearest("prot", names()), Some("port"));
        assert_eq!(nearest("Admin_Port", names()), Some("admin-port"));
        assert_eq!(nearest("read-tokenfile", names()), Some("read-token-file"));
        assert_eq!(nearest("colour", names()), None);
    }

    #[test]
    fn each_key_is_an_option_and_each_option_of_the_proxy_is_a_key_or_is_said_on_the_command_line() {
        let mut command = super::super::command();
        command.build();
        let options = |verb: &[&str]| -> Vec<String> {
            let at = verb.iter().fold(&command, |at, name| at.find_subcommand(name).unwrap());
            at.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
        };
        let (mut keys, beside) = (Vec::new(), ["log", "otp-command"]);
        for table in [""].into_iter().chain(TABLES) {
            for key in of_table(table).into_iter().filter(|key| {
                !beside.contains(&key.name.as_str()) && !SECRETS.iter().any(|it| key.name.starts_with(it))
            }) {
                assert!(options(verb_of(table)).contains(&key.name), "{key:?}");
                keys.push(key);
            }
        }
        // The address of the store is a secret in a file: `redis-url`.
        let own = ["sandbox", "json", "config", "print-config", "help", "redis"];
        for option in options(&["proxy"]).iter().filter(|option| !own.contains(&option.as_str())) {
            assert!(keys.iter().any(|key| key.name == **option), "--{option} is no key");
        }
    }
}
