use secrecy::SecretString;
use steadfast::{
    BoxError,
    auth::{Cause, Stored, Summary, TokenSource},
};

use super::{
    Unusable,
    causes::{causes, causes_of_given},
    chain,
    finding::Findings,
};
use crate::{
    account::{Account, store_failed},
    exit::Failed,
    peer::wrong_token,
    probe::{Probe, Probed},
};

/// Tries the token that the verbs use at the service.
pub(super) struct Tried<'a> {
    pub(super) probe: &'a Probe,
    pub(super) account: &'a Account,
    /// True if the service refused a request without a token. Otherwise another program answers, such as a network's
    /// page for a login, and a 200 to the token says nothing.
    pub(super) is_refused_without: bool,
    /// How far this machine's clock is behind the service's, in milliseconds.
    pub(super) offset: Option<i64>,
}

impl Tried<'_> {
    /// Tries the token of the environment, which every verb uses instead of the stored one. Returns why it may be refused.
    pub(super) async fn given(
        &self,
        token: SecretString,
        findings: &mut Findings,
    ) -> Result<Vec<Cause>, Failed> {
        const USED: &str = "the one of STEADFAST_ACCESS_TOKEN is used, and not the store's: ";
        let source = match TokenSource::fixed(self.account.api_key.clone(), token) {
            Ok(source) => source,
            Err(error) => {
                findings.bad("token", format_args!("{USED}{error}"));
                return Ok(Vec::new());
            }
        };
        let answer = self.probe.with_token(&source).await?;
        if answer.as_ref().is_ok_and(|probed| probed.status == 401 && probed.is_of_sidecar) {
            findings.bad("token", wrong_token(&self.account.base));
            return Ok(Vec::new());
        }
        let refused = self.judge(&answer, USED, "401: is refused", findings);
        Ok(if refused { causes_of_given(self.offset) } else { Vec::new() })
    }

    /// Tries the stored token. Returns why it may be refused.
    pub(super) async fn stored(
        &self,
        summary: Result<Option<Summary>, Unusable>,
        findings: &mut Findings,
    ) -> Result<Vec<Cause>, Failed> {
        let Ok(summary) = summary else {
            findings.doubtful("token", "not looked at, because the store cannot be used");
            return Ok(Vec::new());
        };
        let Some(summary) = summary.filter(|summary| summary.issued_at.is_some()) else {
            findings.unchecked("token", self.none());
            return Ok(Vec::new());
        };
        if summary.is_refused {
            findings.bad("token", told_refused(&summary));
            return Ok(causes(&summary, self.offset));
        }
        let answer = match self.answer_to_stored().await {
            Ok(answer) => answer,
            Err(failed) => {
                findings.bad("token", failed);
                return Ok(Vec::new());
            }
        };
        let refused = self.judge(&answer, "", told_refused(&summary), findings);
        Ok(if refused { causes(&summary, self.offset) } else { Vec::new() })
    }

    /// Describes a store without a token.
    fn none(&self) -> &'static str {
        match self.account.client_id {
            Some(_) => "none is kept, and none was tried; see `steadfast login --help`",
            None => {
                "none was tried: STEADFAST_CLIENT_ID is not set, and the token of a login with a client id is in that \
                 user's own store"
            }
        }
    }

    async fn answer_to_stored(&self) -> Result<Result<Probed, BoxError>, Failed> {
        let login = Stored::new(self.account.identity());
        let source =
            TokenSource::builder(self.account.api_key.clone(), login).store(self.account.store()?).build();
        source.restore().await.map_err(store_failed)?;
        self.probe.with_token(&source).await
    }

    /// Judges a token by the answer to it. `which` says which token it is, `refused` what a 401 means. True for a 401.
    fn judge(
        &self,
        answer: &Result<Probed, BoxError>,
        which: &str,
        refused: &str,
        findings: &mut Findings,
    ) -> bool {
        let status = match answer {
            Ok(probed) => probed.status,
            Err(error) => {
                findings.unchecked("token", format_args!("{which}no answer: {}", chain(&**error)));
                return false;
            }
        };
        match status {
            200 if self.is_refused_without => findings.fine("token", format_args!("{which}is accepted")),
            401 => findings.bad("token", format_args!("{which}{refused}")),
            403 => findings.bad(
                "token",
                format_args!(
                    "{which}403: is known, and this machine's address or the app's segments are not admitted"
                ),
            ),
            _ => findings.unchecked("token", format_args!("{which}{status}: the answer says nothing of it")),
        }
        status == 401
    }
}

/// Describes a stored token that the service answers with 401.
fn told_refused(summary: &Summary) -> &'static str {
    if summary.has_worked {
        "401: is refused, and was accepted before: the session was ended elsewhere; see `steadfast login`"
    } else {
        "401: is refused, and has not been accepted yet"
    }
}
