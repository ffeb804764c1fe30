use std::{collections::BTreeSet, net::IpAddr};

use steadfast_spec::AssetClass;

use crate::gateway::draw::Draw;

/// The sandbox's users and apps: two of each, so that one can try to reach what belongs to the other.
pub(crate) struct Directory {
    users: Vec<User>,
}

/// A user with his one registered app.
pub(crate) struct User {
    pub(crate) client_id: String,
    pub(crate) password: String,
    pub(crate) totp_secret: String,
    pub(crate) app: App,
    /// The last accepted time step of the authenticator, because a code is valid once.
    pub(crate) last_step: Option<u64>,
    /// The code sent by SMS or e-mail, and until when it is valid, by the gateway's clock.
    pub(crate) otp: Option<(String, std::time::Duration)>,
    pub(crate) failed_logins: u32,
    pub(crate) locked: bool,
}

/// An app of §5: its key and secret, the allowed addresses and segments.
pub(crate) struct App {
    pub(crate) api_key: String,
    pub(crate) secret: String,
    pub(crate) redirect_uri: String,
    /// `None` admits any address.
    pub(crate) whitelist: Option<BTreeSet<IpAddr>>,
    /// The whitelist as it was set, before any fault removed addresses.
    pub(crate) registered_addresses: Option<BTreeSet<IpAddr>>,
    pub(crate) derivatives: bool,
}

/// The index of a user in the directory.
pub(crate) type UserIndex = usize;

impl Directory {
    pub(crate) fn new(draw: Draw) -> Self {
        let user = |client_id: &str, derivatives: bool| User {
            client_id: client_id.to_owned(),
            password: draw.text("password", client_id)[..16].to_owned(),
            totp_secret: draw.base32("totp", client_id),
            app: App {
                api_key: draw.text("api-key", client_id)[..24].to_owned(),
                secret: draw.text("secret", client_id)[..32].to_owned(),
                redirect_uri: "http://127.0.0.1:8799/callback".to_owned(),
                whitelist: None,
                registered_addresses: None,
                derivatives,
            },
            last_step: None,
            otp: None,
            failed_logins: 0,
            locked: false,
        };
        Self { users: vec![user("SB0001", true), user("SB0002", false)] }
    }

    pub(crate) fn by_api_key(&self, api_key: &str) -> Option<UserIndex> {
        self.users.iter().position(|user| user.app.api_key == api_key)
    }

    pub(crate) fn by_client_id(&self, client_id: &str) -> Option<UserIndex> {
        self.users.iter().position(|user| user.client_id == client_id)
    }

    pub(crate) fn user(&self, index: UserIndex) -> &User {
        &self.users[index]
    }

    pub(crate) fn user_mut(&mut self, index: UserIndex) -> &mut User {
        &mut self.users[index]
    }

    pub(crate) fn users_mut(&mut self) -> impl Iterator<Item = &mut User> {
        self.users.iter_mut()
    }
}

impl App {
    /// Sets the addresses from which the app may be used.
    pub(crate) fn register(&mut self, addresses: Option<BTreeSet<IpAddr>>) {
        self.whitelist.clone_from(&addresses);
        self.registered_addresses = addresses;
    }

    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        self.whitelist.as_ref().is_none_or(|list| list.contains(&peer))
    }

    /// Returns true if the app may trade the segment; the second app may not trade derivatives (§7, 403).
    pub(crate) fn may_trade(&self, class: AssetClass) -> bool {
        class == AssetClass::Equity || self.derivatives
    }
}
