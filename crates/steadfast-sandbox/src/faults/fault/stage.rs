use super::Fault;

/// The part of a request's way through the gateway at which a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// When a connection is accepted.
    Accept,
    /// On the way to the gateway.
    Up,
    /// Before the request is looked at.
    Connection,
    /// Before its credentials are checked.
    Credentials,
    /// When its quota is decided.
    Quota,
    /// In place of, or around, placing an order.
    Placement,
    /// In place of, or around, listing orders.
    List,
    /// Before a login's password is checked.
    BeforeLogin,
    /// In place of, or around, opening a session.
    Login,
    /// After the request was executed.
    Answer,
    /// On the way back.
    Down,
}

/// Where a fault can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Over connections and in the in-process service.
    Anywhere,
    /// Over connections only: it strikes the connection, and the in-process service has none.
    Connection,
}

impl Fault {
    /// Returns where the fault can be injected.
    #[must_use]
    pub fn place(self) -> Place {
        match self.stage() {
            Stage::Accept => Place::Connection,
            _ => Place::Anywhere,
        }
    }

    /// Returns the fault's group, the part of its name before the dot.
    #[must_use]
    pub fn group(self) -> &'static str {
        self.as_str().split_once('.').map_or("", |(group, _)| group)
    }

    pub(crate) fn stage(self) -> Stage {
        match self {
            Self::ConnectionResetBefore => Stage::Connection,
            Self::ConnectionResetAfter | Self::ConnectionResetMidBody | Self::AuthDateSkew => Stage::Answer,
            Self::AuthLogin429
            | Self::AuthLogin500
            | Self::AuthLogin504
            | Self::AuthLoginHang
            | Self::AuthTotpSkew => Stage::BeforeLogin,
            Self::AuthLogin5xx
            | Self::AuthLockOut
            | Self::AuthSameToken
            | Self::AuthExpiresZero
            | Self::AuthExpiresNegative
            | Self::AuthExpiresHuge
            | Self::AuthExpiresText => Stage::Login,
            _ => match self.group() {
                "connection" => Stage::Accept,
                "placement" => Stage::Placement,
                "list" => Stage::List,
                "quota" => Stage::Quota,
                "answer" | "transport" => Stage::Answer,
                "time" if self.as_str().starts_with("time.up") => Stage::Up,
                "time" => Stage::Down,
                _ => Stage::Credentials,
            },
        }
    }
}

impl Stage {
    /// Returns the stage's name in draws.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Up => "up",
            Self::Connection => "connection",
            Self::Credentials => "credentials",
            Self::Quota => "quota",
            Self::Placement => "placement",
            Self::List => "list",
            Self::BeforeLogin => "before-login",
            Self::Login => "login",
            Self::Answer => "answer",
            Self::Down => "down",
        }
    }
}
