//! The response envelope, and the absence of pages.

use steadfast::{ErrorKind, Operation, spec::Endpoint};
use steadfast_sandbox::Sandbox;

use crate::{
    served::{canned, envelope_error, serve},
    world::order_with,
};

#[tokio::test]
async fn spec_1_client_reads_the_three_states_of_the_envelope() {
    let (client, _) = canned(vec![
        (200, r#"{"s":"ok","d":{"a":1}}"#.into()),
        (200, r#"{"s":"ok","d":[1,2]}"#.into()),
        (200, r#"{"s":"ok","d":"text"}"#.into()),
        (200, r#"{"s":"no-data","msg":"no-data"}"#.into()),
        (403, envelope_error("Forbidden")),
        (
            400,
            envelope_error(
                "Input validation failed. Kindly check your input contains required fields for the request",
            ),
        ),
    ])
    .await;
    let history = Operation::new(Endpoint::History);
    for payload in ["{\"a\":1}", "[1,2]", "\"text\""] {
        assert_eq!(client.call(&history).await.unwrap().unwrap().to_string(), payload);
    }
    assert_eq!(client.call(&history).await.unwrap(), None);
    for (status, msg) in [(403, "Forbidden"), (400, "Input validation failed.")] {
        let error = client.call(&history).await.unwrap_err();
        assert_eq!(error.status().map(|status| status.as_u16()), Some(status));
        assert!(error.message().unwrap().starts_with(msg), "{error}");
    }
}

#[tokio::test]
async fn spec_1_client_takes_no_answer_without_its_envelope_for_a_success() {
    let broken = [
        r#"{"d":[]}"#,
        r#"{"s":"ok"}"#,
        r#"{"s":"OK","d":[]}"#,
        r#"{"s":"error","msg":"Forbidden"}"#,
        "[]",
        "<html>maintenance</html>",
        "",
    ];
    let (client, _) = canned(broken.map(|body| (200, body.to_owned())).to_vec()).await;
    for body in broken {
        let error = client.orders().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedAnswer, "{body}");
    }
}

#[tokio::test]
async fn spec_1_client_no_data_is_an_empty_list_and_no_error() {
    let served = serve(Sandbox::builder().build().unwrap()).await;
    let client = served.client();
    assert_eq!(client.orders().await.unwrap(), []);
    assert_eq!(client.call(&Operation::orders()).await.unwrap(), None);
    assert_eq!(served.sandbox.state().arrivals.len(), 2, "an empty list is no reason to ask again");
}

#[tokio::test]
async fn spec_1_client_s_decides_and_not_the_text_of_msg() {
    let (client, _) = canned(vec![
        (200, r#"{"s":"no-data","msg":"nothing today"}"#.into()),
        (200, r#"{"s":"error","msg":"no-data"}"#.into()),
    ])
    .await;
    assert_eq!(client.orders().await.unwrap(), []);
    assert_eq!(client.orders().await.unwrap_err().kind(), ErrorKind::UnexpectedAnswer);
}

#[tokio::test]
async fn spec_1_client_a_list_is_whole_after_one_request_without_paging() {
    let served = serve(Sandbox::builder().build().unwrap()).await;
    let placed: Vec<String> = (0..120).map(|_| served.sandbox.place_foreign(&order_with(&[]))).collect();
    let orders = served.client().orders().await.unwrap();
    assert_eq!(orders.into_iter().map(|order| order.order_id).collect::<Vec<_>>(), placed);
    assert_eq!(served.sandbox.state().requests, 1);

    let (client, read) = canned(vec![(200, r#"{"s":"no-data","msg":"no-data"}"#.into())]).await;
    client.orders().await.unwrap();
    assert!(read.lock().unwrap()[0].starts_with("GET /v2/api/oms/orders HTTP/1.1\r\n"), "no query is sent");
}
