use secrecy::SecretString;

/// The values of a login with an authenticator app (§4.3), for [`Access::totp`](crate::Access::totp).
///
/// Each is made from a text by `into()`. `Debug` shows none of them.
///
/// # Example
///
/// ```
/// use steadfast::{Access, TotpCredentials};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let access = Access::totp(TotpCredentials {
///     api_key: "apikey".into(),
///     client_id: "client-id".into(),
///     password: "password".into(),
///     totp_secret: "AYOJWTMM6TUYN4RMVSHYXKFE2CIFYIRL".into(),
/// })?;
/// # drop(access);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TotpCredentials {
    /// The key of the app.
    pub api_key: SecretString,
    /// The user's client id.
    pub client_id: SecretString,
    /// The user's password.
    pub password: SecretString,
    /// The secret of the authenticator app, in base32.
    pub totp_secret: SecretString,
}
