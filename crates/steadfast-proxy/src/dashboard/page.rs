//! The two pages: the dashboard, and the door for a visitor without a cookie.
//!
//! Each is one file: its one style and its one script stand in it, and its `Content-Security-Policy` allows these by their
//! hashes and nothing else. The page puts texts of the service into the document as text only, and the policy makes the
//! browser hold it to that (`require-trusted-types-for`).

use std::sync::LazyLock;

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};

/// A page with its policy.
pub(crate) struct Page {
    html: String,
    policy: String,
}

pub(crate) static DASHBOARD: LazyLock<Page> = LazyLock::new(|| {
    let (style, script) = (include_str!("page/dashboard.css"), include_str!("page/dashboard.js"));
    Page::new(include_str!("page/dashboard.html"), style, script)
});

pub(crate) static DOOR: LazyLock<Page> = LazyLock::new(|| {
    let (style, script) = (include_str!("page/door.css"), include_str!("page/door.js"));
    Page::new(include_str!("page/door.html"), style, script)
});

impl Page {
    fn new(html: &str, style: &str, script: &str) -> Self {
        let html = html.replace("{style}", style).replace("{script}", script);
        let policy = format!(
            "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
            hash(style),
            hash(script)
        );
        Self { html, policy }
    }

    /// Returns the page.
    pub(crate) fn html(&self) -> &str {
        &self.html
    }

    /// Returns its `Content-Security-Policy`.
    pub(crate) fn policy(&self) -> &str {
        &self.policy
    }
}

/// Adds what every answer to a browser has, and the policy of what is no page, if there is none.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(nothing);
}

/// Returns a source expression for an inline text.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests;
