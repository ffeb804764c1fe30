//! How the tests log in: by two-factor code (§4.3) and by the authorization-code flow (§4.2).
//!
//! The login page and its redirect are "not shown"; the tests' assumptions about them are written here.

use http::{Method, header::LOCATION};
use serde_json::Value;

use crate::{
    answer::Answer,
    call::Call,
    endpoints::{AUTHORIZE, INDIVIDUAL_TOKEN, ORDERS, TOKEN},
    form::Form,
    login_page::LoginPage,
    world::{A_MINUTE, Session, World},
};

/// The fault that answers a login with 500.
pub(crate) const LOGIN_FAULT: &str = "auth.login-5xx";

impl World {
    /// Returns the fields of §4.3 with a code that is valid now.
    pub(crate) fn login_form(&self) -> Form {
        Form::new([
            ("client_id", &self.user.client_id),
            ("password", &self.user.password),
            ("twoFa", &self.sandbox.totp_now()),
            ("twoFaTyp", "totp"),
        ])
    }

    pub(crate) fn individual_token(&self, form: &Form) -> Call {
        self.post(INDIVIDUAL_TOKEN, form).authorization(&format!("Bearer {}", self.user.api_key))
    }

    /// Tries to log in once more, with a two-factor code that no earlier login has used.
    pub(crate) async fn try_log_in(&self) -> Answer {
        self.pass(A_MINUTE);
        self.individual_token(&self.login_form()).send().await
    }

    pub(crate) async fn log_in(&self) -> Session {
        let answer = self.try_log_in().await;
        self.session_from(&answer)
    }

    /// Returns the session that a successful individual login has opened, wherever the payload has the
    /// token.
    #[track_caller]
    pub(crate) fn session_from(&self, answer: &Answer) -> Session {
        let token = find_token(&answer.json()).unwrap_or_else(|| panic!("no token: {answer}"));
        Session { api_key: self.user.api_key.clone(), token }
    }

    /// Returns the five fields of §4.2.
    pub(crate) fn exchange_form(&self, code: &str) -> Form {
        Form::new([
            ("code", code),
            ("client_id", &self.user.api_key),
            ("client_secret", &self.user.client_secret),
            ("redirect_uri", &self.user.redirect_uri),
            ("grant_type", "authorization_code"),
        ])
    }

    pub(crate) fn exchange(&self, form: &Form) -> Call {
        self.post(TOKEN, form).without_authorization()
    }

    pub(crate) fn authorize_query(&self) -> Form {
        Form::new([
            ("response_type", "code"),
            ("client_id", &self.user.api_key),
            ("redirect_uri", &self.user.redirect_uri),
            ("state", "spec state"),
        ])
    }

    /// Opens the login page, submits the credentials, and returns the target of the redirect.
    pub(crate) async fn redirect_after_login(&self) -> String {
        self.pass(A_MINUTE);
        let query = self.authorize_query().encoded();
        let shown = self.get(AUTHORIZE).without_authorization().raw_query(&query).send().await;
        assert!(shown.status.is_success(), "{shown}");
        let page = LoginPage::parse(&String::from_utf8_lossy(&shown.body));
        let typed = self.login_form();
        let form = page.filled_in(&typed);
        let target = match page.action.as_deref() {
            Some(action) if !action.is_empty() => self.resolved(action),
            _ => format!("{}{AUTHORIZE}?{query}", self.base_url),
        };
        let call = self.request_to(Method::POST, &target).without_authorization().form(&form);
        let answer = self.calmly(&call).await;
        assert!(answer.status.is_redirection(), "{answer}");
        let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        location.unwrap_or_else(|| panic!("no Location: {answer}")).to_owned()
    }

    /// Runs the login flow up to the authorization code.
    pub(crate) async fn authorization_code(&self) -> String {
        let location = self.redirect_after_login().await;
        let (_, query) = location.split_once('?').expect("a redirect with a query");
        Form::parse(query).get("code").to_owned()
    }

    /// Runs the whole OAuth flow.
    pub(crate) async fn log_in_by_oauth(&self) -> Session {
        let code = self.authorization_code().await;
        let answer = self.calmly(&self.exchange(&self.exchange_form(&code))).await;
        let token = answer.json()["access_token"].as_str().map(str::to_owned);
        let token = token.unwrap_or_else(|| panic!("no token: {answer}"));
        Session { api_key: self.user.api_key.clone(), token }
    }

    /// Returns true if the session still gives access to a protected endpoint.
    pub(crate) async fn is_alive(&self, session: &Session) -> bool {
        let answer = self.calmly(&self.get(ORDERS).bearer(session)).await;
        match answer.status.as_u16() {
            401 => false,
            _ if answer.status.is_success() => true,
            _ => panic!("neither alive nor dead: {answer}"),
        }
    }

    /// Resolves a form's target against the page's own address, as a browser does.
    fn resolved(&self, action: &str) -> String {
        if action.starts_with("http") {
            return action.to_owned();
        }
        let scheme_end = self.base_url.find("://").expect("an absolute base address") + 3;
        let host_end = self.base_url[scheme_end..].find('/').expect("a path") + scheme_end;
        match action.chars().next() {
            Some('/') => format!("{}{action}", &self.base_url[..host_end]),
            Some('?') => format!("{}{AUTHORIZE}{action}", self.base_url),
            _ => format!("{}/api-gw/oauth/{action}", self.base_url),
        }
    }
}

fn find_token(payload: &Value) -> Option<String> {
    match payload {
        Value::String(token) => Some(token.clone()),
        Value::Object(fields) => fields
            .get("access_token")
            .and_then(|token| token.as_str().map(str::to_owned))
            .or_else(|| fields.values().filter(|value| value.is_object()).find_map(find_token)),
        _ => None,
    }
}
