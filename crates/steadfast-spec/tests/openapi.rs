//! The service's OpenAPI document, read by a validator that shares no code with it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use http::{HeaderName, StatusCode};
use roas::{
    v3_1::spec::Spec,
    validation::{Options, Validate},
};
use serde_json::Value;
use steadfast_spec::{OpenApi, Paths};

/// Returns the findings of the validator.
fn findings(document: Value) -> Result<(), String> {
    let spec: Spec = serde_json::from_value(document).map_err(|error| error.to_string())?;
    spec.validate(Options::new(), None).map_err(|error| error.to_string())
}

#[test]
fn the_document_is_openapi_3_1_for_both_presets() {
    for paths in [Paths::default(), Paths::public(), Paths::published_client()] {
        let document = OpenApi::new(&paths)
            .server("http://127.0.0.1:8080/v2")
            .header(HeaderName::from_static("x-lane"), "how urgent it is", |_| true)
            .answer(StatusCode::CONFLICT, "an equal order is unresolved", |endpoint| endpoint.moves_money())
            .document();
        assert_eq!(findings(document), Ok(()));
    }
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let paths = Paths::published_client();
    let good = || OpenApi::new(&paths).document();
    let place = "/paths/~1api~1oms~1place-order/post";
    for (at, wrong) in [
        (format!("{place}/operationId"), "orders".into()),
        (format!("{place}/responses/400/description"), Value::Null),
        (format!("{place}/tags/0"), "unknown".into()),
        (format!("{place}/security/0"), serde_json::json!({"unknown": []})),
        (
            format!("{place}/responses/400/content/application~1json/schema/$ref"),
            "#/components/schemas/None".into(),
        ),
        ("/openapi".to_owned(), "4.0".into()),
    ] {
        let mut document = good();
        *document.pointer_mut(&at).unwrap() = wrong;
        assert!(findings(document).is_err(), "{at}");
    }
}
