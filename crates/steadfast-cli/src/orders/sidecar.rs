//! A running sidecar, which holds the journal: it takes a ruling by its listener for operators.

use std::{io::ErrorKind, path::Path, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use secrecy::{ExposeSecret, SecretString};
use steadfast::{dedup::RecoveredOrder, spec::Form};
use tokio::time::timeout;

use crate::{
    exit::Failed,
    journal::{Facts, path_of, read_own},
    readable::readable,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer.
const LONGEST: usize = 4_096;

/// The sidecar, and what opens it.
pub(super) struct Sidecar {
    admin: Uri,
    token: SecretString,
}

impl Sidecar {
    /// Finds the sidecar that holds the journal; `None` if none has said that it does.
    pub(super) fn of(journal: &Path) -> Result<Option<Self>, Failed> {
        let path = path_of(journal);
        let unusable =
            |error: &dyn std::fmt::Display| Failed::usage(format_args!("{}: {error}", path.display()));
        let text = match read_own(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&error)),
        };
        let facts: Facts = serde_json::from_str(&text).map_err(|error| unusable(&error))?;
        let admin = facts.admin_url.parse().map_err(|error| unusable(&error))?;
        Self::at(&admin, &facts.token_file).map(Some)
    }

    /// The sidecar at an address of its operator, with the local token in this file.
    pub(super) fn at(admin: &Uri, token_file: &Path) -> Result<Self, Failed> {
        let authority = admin.authority().filter(|_| admin.scheme_str() == Some("http"));
        let Some(authority) = authority.filter(|at| matches!(at.host(), "127.0.0.1" | "localhost" | "[::1]"))
        else {
            return Err(Failed::usage(
                "the operator's address of a sidecar is one of this machine, such as http://127.0.0.1:8091",
            ));
        };
        let token = read_own(token_file)
            .map_err(|error| Failed::usage(format_args!("{}: {error}", token_file.display())))?;
        let admin = format!("http://{authority}").parse().map_err(Failed::usage)?;
        Ok(Self { admin, token: token.trim().to_owned().into() })
    }

    /// Rules on an order: placed under this id, or not placed.
    pub(super) async fn rule(&self, order: &RecoveredOrder, order_id: Option<&str>) -> Result<(), Failed> {
        let ruling = order_id.map_or(("not-placed", ""), |order_id| ("placed", order_id));
        let query = Form::new()
            .with("account", order.account.as_str())
            .with("intent", order.intent.0.to_string())
            .with(ruling.0, ruling.1);
        let uri = format!("{}-/rule?{}", self.admin, query.encode());
        let request = Request::post(uri)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token.expose_secret()))
            .header(header::CONTENT_LENGTH, 0)
            .body(Empty::<Bytes>::new())
            .map_err(Failed::error)?;
        let client: Client<HttpConnector, _> = Client::builder(TokioExecutor::new()).build_http();
        let unsaid = |error: &dyn std::fmt::Display| {
            Failed::unavailable(format_args!(
                "the sidecar at {} has not confirmed the ruling: {error}; `steadfast orders unresolved` shows whether it is there",
                self.admin
            ))
        };
        let answer = timeout(PATIENCE, client.request(request)).await.map_err(|error| unsaid(&error))?;
        let (head, body) = answer.map_err(|error| unsaid(&error))?.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(|error| unsaid(&error))?.to_bytes();
        let said = String::from_utf8_lossy(&body);
        match head.status {
            StatusCode::OK => Ok(()),
            StatusCode::CONFLICT => Err(Failed::usage(format_args!(
                "the sidecar did not take the ruling: {}; an order that is still looked for has to wait for the end of that, \
                 and one of an earlier day for the sidecar's",
                readable(said.trim())
            ))),
            status => Err(unsaid(&format_args!("it answers {status}"))),
        }
    }
}
