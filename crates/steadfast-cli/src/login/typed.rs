use std::sync::Arc;

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use steadfast::auth::Credentials;

use crate::{
    account::Account,
    exit::Failed,
    readable,
    secret::{ask, find_or_ask, origin},
};

/// The client id and the password of a login, as far as a person has typed them.
///
/// After a refusal both may be corrected: a further code alone would spend the last try on a mistyped client id.
///
/// # Clone
///
/// Clones share them.
#[derive(Clone, Default)]
pub(super) struct Typed(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    client_id: Option<SecretString>,
    password: Option<SecretString>,
    is_corrected: bool,
}

impl Typed {
    /// Returns the credentials of the next try. What is neither given nor typed is asked for.
    pub(super) async fn credentials(&self, account: &Account) -> Result<Credentials, Failed> {
        let (typed_id, typed_password) = {
            let state = self.0.lock();
            (state.client_id.clone(), state.password.clone())
        };
        let client_id = match (&account.client_id, typed_id) {
            (Some(given), _) => given.clone(),
            (None, Some(typed)) => typed,
            (None, None) => {
                let typed = find_or_ask("CLIENT_ID", "client id").await?;
                self.0.lock().client_id = Some(typed.clone());
                typed
            }
        };
        let password = match typed_password {
            Some(typed) => typed,
            None => {
                let is_given = origin("PASSWORD")?.is_some();
                let password = find_or_ask("PASSWORD", "password").await?;
                self.0.lock().password = (!is_given).then(|| password.clone());
                password
            }
        };
        Ok(Credentials::new(client_id, password))
    }

    /// Asks a person whose login was refused for what was typed, where Enter keeps it. Returns true if any of it is another one
    /// now.
    pub(super) async fn correct(&self) -> std::io::Result<bool> {
        let (client_id, password) = {
            let state = self.0.lock();
            (state.client_id.clone(), state.password.clone())
        };
        let client_id = match client_id {
            Some(typed) => {
                let prompt = format!("client id (Enter keeps {})", readable::readable(typed.expose_secret()));
                other_than(&typed, &prompt).await?
            }
            None => None,
        };
        let password = match password {
            Some(typed) => other_than(&typed, "password (Enter keeps it)").await?,
            None => None,
        };
        if let Some(password) = &password {
            readable::hide(password);
        }
        let mut state = self.0.lock();
        state.is_corrected = client_id.is_some() || password.is_some();
        state.client_id = client_id.or(state.client_id.take());
        state.password = password.or(state.password.take());
        Ok(state.is_corrected)
    }

    /// True if the last try was left because of a correction; the next one may begin.
    pub(super) fn take_corrected(&self) -> bool {
        std::mem::take(&mut self.0.lock().is_corrected)
    }
}

/// Asks for a value, and returns it if it is another one.
async fn other_than(typed: &SecretString, prompt: &str) -> std::io::Result<Option<SecretString>> {
    let answer = ask(prompt).await?;
    let is_other = !answer.expose_secret().is_empty() && answer.expose_secret() != typed.expose_secret();
    Ok(is_other.then_some(answer))
}
