use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use steadfast_spec::{Form, msg};

use crate::{
    faults::{Fault, Stage},
    gateway::{
        directory::UserIndex,
        engine::{BASE_PATH, Engine, LOGIN_PATH},
        passage::{Caller, Passage},
        reply::Reply,
        session::TooManySessions,
        settings::LoginAnswer,
        spec_reading::OldToken,
        totp,
    },
    wire::page::{Page, refusal},
};

/// The fields that the login page passes on from the authorize address; §4.2 does not show them.
const HANDED_ON: [&str; 3] = ["client_id", "redirect_uri", "state"];

impl Engine {
    /// Returns a fault's answer to a login, without looking at the login.
    pub(crate) fn spoil_login(&mut self, passage: &mut Passage<'_>) -> Option<Reply> {
        let strike = self.strike(Stage::BeforeLogin, passage)?;
        let page = match strike.fault {
            Fault::AuthLogin429 => refusal::too_many_requests(),
            Fault::AuthLogin500 => Page::error(StatusCode::INTERNAL_SERVER_ERROR, msg::INTERNAL_SERVER_ERROR),
            Fault::AuthLogin504 => {
                let page = Page::error(StatusCode::GATEWAY_TIMEOUT, msg::GATEWAY_TIMED_OUT);
                return Some(Reply { after: self.settings.gateway_timeout, ..page.into() });
            }
            Fault::AuthLoginHang => return Some(self.corrupted(strike, Page::no_data(), passage)),
            _ => {
                passage.totp_skewed = true;
                return None;
            }
        };
        Some(page.into())
    }

    /// §4.1: "user logs in and is redirected with a `code`". The page itself is not shown.
    pub(crate) fn login_page(&self, query: &Form) -> Page {
        let app = query.get("client_id").and_then(|key| self.directory.by_api_key(key));
        let registered = app.map(|user| self.directory.user(user).app.redirect_uri.as_str());
        if registered.is_none() || query.get("redirect_uri").is_some_and(|uri| Some(uri) != registered) {
            return refusal::unauthorized();
        }
        let hidden: String = HANDED_ON
            .into_iter()
            .filter_map(|name| query.get(name).map(|value| (name, value)))
            .map(|(name, value)| {
                // The login form has its own `client_id` for the user, so the app's is passed on as
                // `api_key`.
                let name = if name == "client_id" { "api_key" } else { name };
                format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escape(value))
            })
            .collect();
        Page::html(format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sandbox login</title>\
             <h1>Sandbox login</h1><form method=\"post\" action=\"{BASE_PATH}{LOGIN_PATH}\">{hidden}\
             <label>Client id <input name=\"client_id\"></label> \
             <label>Password <input name=\"password\" type=\"password\"></label> \
             <label>Code <input name=\"twoFa\" inputmode=\"numeric\"></label> \
             <button>Log in</button></form></html>"
        ))
    }

    /// Handles the login page's form: redirects with a single-use code.
    pub(crate) fn submit_login(&mut self, passage: &mut Passage<'_>, form: &Form) -> Page {
        let app = form.get("api_key").and_then(|key| self.directory.by_api_key(key));
        let user = form.get("client_id").and_then(|id| self.directory.by_client_id(id));
        let (Some(app), Some(user)) = (app, user) else { return self.refuse_login(None) };
        if app != user || !self.credentials_hold(passage, user, form, "totp") {
            return self.refuse_login(Some(user));
        }
        let redirect_uri = self.directory.user(app).app.redirect_uri.clone();
        if form.get("redirect_uri").is_some_and(|uri| uri != redirect_uri) {
            return refusal::unauthorized();
        }
        let code = self.sessions.issue_code(user, &redirect_uri, passage.now, self.draw);
        let mut answer = Form::new().with("code", code);
        if let Some(state) = form.get("state") {
            answer = answer.with("state", state);
        }
        let separator = if redirect_uri.contains('?') { '&' } else { '?' };
        Page::redirect(format!("{redirect_uri}{separator}{}", answer.encode()))
    }

    /// §4.2.
    pub(crate) fn exchange_code(&mut self, passage: &mut Passage<'_>, form: &Form) -> Page {
        let field = |name| form.get(name).filter(|value: &&str| !value.is_empty());
        let (Some(code), Some(api_key), Some(secret), Some(redirect_uri), Some(grant_type)) = (
            field("code"),
            field("client_id"),
            field("client_secret"),
            field("redirect_uri"),
            field("grant_type"),
        ) else {
            return refusal::input_validation();
        };
        if grant_type != "authorization_code" {
            return refusal::input_validation();
        }
        let app =
            self.directory.by_api_key(api_key).filter(|&user| self.directory.user(user).app.secret == secret);
        let Some(app) = app else { return self.refuse_login(None) };
        if !self.directory.user(app).app.admits(passage.incoming.peer) {
            return refusal::unauthorized();
        }
        match self.sessions.take_code(code, redirect_uri, passage.now) {
            Some(user) if user == app => self.open_session(passage, user, LoginAnswer::Bare),
            _ => self.refuse_login(None),
        }
    }

    /// §4.3.
    pub(crate) fn individual_token(
        &mut self,
        passage: &mut Passage<'_>,
        caller: Caller,
        form: &Form,
    ) -> Page {
        let present = |name| form.get(name).is_some_and(|value| !value.is_empty());
        let kind = form.get("twoFaTyp").unwrap_or_default();
        let names_client = present("client_id");
        let is_complete =
            ["password", "twoFa"].into_iter().all(present) && (names_client || self.settings.published);
        if !matches!(kind, "otp" | "totp") || !is_complete {
            return refusal::input_validation();
        }
        let named = || form.get("client_id").and_then(|id| self.directory.by_client_id(id));
        let user = if names_client { named() } else { Some(caller.user) };
        if user != Some(caller.user) || !self.credentials_hold(passage, caller.user, form, kind) {
            return self.refuse_login(user);
        }
        self.open_session(passage, caller.user, self.settings.login_answer)
    }

    fn open_session(&mut self, passage: &mut Passage<'_>, user: UserIndex, answer: LoginAnswer) -> Page {
        let strike = self.strike(Stage::Login, passage).map(|strike| strike.fault);
        if strike == Some(Fault::AuthLockOut) {
            self.directory.user_mut(user).locked = true;
            return self.refuse_login(Some(user));
        }
        let same = self.sessions.latest(user, passage.now).filter(|_| strike == Some(Fault::AuthSameToken));
        if same.is_none() && self.settings.interpretation.old_token == OldToken::Dies {
            self.sessions.revoke_user(user);
        }
        let opened = match same {
            Some(token) => Ok(token),
            None => self.sessions.open(user, passage.now, self.settings.eleventh_session, self.draw),
        };
        let token = match opened {
            Ok(token) => token,
            Err(TooManySessions) => return refusal::forbidden(),
        };
        self.directory.user_mut(user).failed_logins = 0;
        self.record.logins.succeeded += 1;
        if strike == Some(Fault::AuthLogin5xx) {
            return Page::error(StatusCode::INTERNAL_SERVER_ERROR, msg::INTERNAL_SERVER_ERROR);
        }
        let expires_in = match strike {
            Some(Fault::AuthExpiresZero) => json!(0),
            Some(Fault::AuthExpiresNegative) => json!(-1),
            Some(Fault::AuthExpiresHuge) => json!(u64::MAX),
            Some(Fault::AuthExpiresText) => json!("soon"),
            _ => self.settings.interpretation.expires_in(),
        };
        let record = json!({
            "access_token": token,
            "token_type": "bearer",
            "expires_in": expires_in,
            "scope": "general",
        });
        match answer {
            LoginAnswer::Bare => Page::json(StatusCode::OK, &record),
            LoginAnswer::Enveloped => Page::ok(record),
        }
    }

    /// Checks password and two-factor code. A right code is used up even if the password is wrong.
    fn credentials_hold(&mut self, passage: &Passage<'_>, user: UserIndex, form: &Form, kind: &str) -> bool {
        // Two minutes ahead is beyond every authenticator's tolerance.
        let ahead = if passage.totp_skewed { Duration::from_secs(120) } else { Duration::ZERO };
        let step = totp::step_at(self.wall(passage.now) + ahead);
        let window = self.settings.totp_window;
        let user = self.directory.user_mut(user);
        let given = form.get("twoFa").unwrap_or_default();
        let code_holds = match kind {
            "otp" => {
                let otp = user.otp.take_if(|(code, until)| code == given && passage.now < *until);
                otp.is_some()
            }
            _ => {
                let secret =
                    data_encoding::BASE32_NOPAD.decode(user.totp_secret.as_bytes()).unwrap_or_default();
                let matching = (step.saturating_sub(window)..=step + window)
                    .filter(|step| user.last_step.is_none_or(|last| *step > last))
                    .find(|step| totp::code(&secret, *step) == given);
                user.last_step = matching.or(user.last_step);
                matching.is_some()
            }
        };
        code_holds && form.get("password") == Some(user.password.as_str()) && !user.locked
    }

    fn refuse_login(&mut self, user: Option<UserIndex>) -> Page {
        self.record.logins.failed += 1;
        if let (Some(index), Some(most)) = (user, self.settings.lock_out_after) {
            let user = self.directory.user_mut(index);
            user.failed_logins += 1;
            user.locked |= user.failed_logins >= most;
        }
        refusal::unauthorized()
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
