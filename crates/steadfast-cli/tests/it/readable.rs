//! X1: texts of the service reach terminals, files and logs only after sanitising.

use crate::{
    command::steadfast,
    files::{orders, said},
    own_gateway::{KEY, OwnGateway, TOKEN, placed},
};

/// Returns a text by which the service could harm a reader of the results.
fn vile() -> String {
    format!("@SUM(1) \u{1b}]0;title\u{7}\u{1b}[2J \u{202e}{TOKEN} and {KEY}, cut: {}", &TOKEN[..12])
}

#[tokio::test]
async fn x01_a_vile_answer_reaches_no_output_file_or_journal() {
    // An id with a control character is not valid.
    let ids = ["=cmd|'/c calc'!A1", "\u{202e}26", "+1"];
    let gateway = OwnGateway::serve(move |number| placed(ids[number], &vile())).await;
    let file = orders(3);
    let results = file.beside("results.csv");
    let to_file = ["replay", file.path(), "--yes", "--out", &results];
    let mut command = gateway.command(&to_file);
    let output = command.env("STEADFAST_LOG", "trace").output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(gateway.orders().len(), 3, "{stderr}");
    assert!(gateway.orders()[0].authorization.contains(TOKEN), "the token was used");
    let rows = std::fs::read_to_string(&results).unwrap();
    assert_eq!(rows.lines().count(), 4, "{rows}");
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.splitn(5, ',').collect();
        for cell in [cells[2], cells[4]] {
            let cell = cell.trim_start_matches('"');
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t']), "a formula: {row}");
        }
    }
    let again = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (shown, more) = said(&again);
    let mut sinks = vec![("results", rows), ("stdout", stdout), ("stdout again", shown), ("stderr", more)];
    for name in ["orders.csv.journal", "orders.csv.journal.limits"] {
        let kept = std::fs::read(file.beside(name)).unwrap();
        sinks.push((name, String::from_utf8_lossy(&kept).into_owned()));
    }
    for (sink, text) in &sinks {
        for piece in [&TOKEN[..8], &TOKEN[4..12], &KEY[..8]] {
            assert!(!text.contains(piece), "{piece} is in {sink}: {text}");
        }
    }
    for (sink, text) in &sinks[..4] {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{sink} moves a cursor: {text:?}");
    }
    // The log has colours of its own.
    assert!(stderr.contains("TRACE") && !stderr.contains(TOKEN) && !stderr.contains(KEY), "the log");
}

#[tokio::test]
async fn x01_a_token_in_another_spelling_is_masked_too() {
    let credentials = format!("{KEY}:{TOKEN}");
    let hex = data_encoding::HEXLOWER.encode(TOKEN.as_bytes());
    let base64 = data_encoding::BASE64.encode(credentials.as_bytes());
    let percent: String = TOKEN.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let json: String = TOKEN.bytes().map(|byte| format!("\\u{byte:04X}")).collect();
    let mixed = format!("\\u0074{}", &TOKEN[1..]);
    let twice: String = TOKEN.bytes().map(|byte| format!("%25{byte:02x}")).collect();
    let texts = [hex, base64, percent, json, mixed, twice];
    let spellings = texts.clone();
    let gateway = OwnGateway::serve(move |number| {
        (
            // The one refusal whose text §7 leaves open.
            415,
            serde_json::json!({"s": "error", "msg": format!("no access for {}", texts[number])}).to_string(),
        )
    })
    .await;
    let file = orders(spellings.len());
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    let output = command.env("STEADFAST_LOG", "trace").output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(stdout.matches(",refused,,,415 no access for ***").count(), spellings.len(), "{stdout}");
    for spelling in spellings {
        assert!(!stdout.contains(&spelling) && !stderr.contains(&spelling), "{spelling}: {stdout}{stderr}");
    }
}

#[tokio::test]
async fn x01_what_is_wrong_with_the_command_line_quotes_no_password() {
    let url = "https://trader:hunter2-and-more@api.example/v2";
    for args in [
        &["replay", "orders.csv", "--base-url", url][..],
        &["doctor", "--base-url", url],
        &["login", "--base-url", url],
        &["orders", "verify", "--base-url", url],
        &["auth", "status", TOKEN],
        &["replay", "orders.csv", "--help"],
        &["login", "--help"],
    ] {
        let mut command = steadfast(args);
        command.env("STEADFAST_BASE_URL", url).env("STEADFAST_ACCESS_TOKEN", TOKEN);
        let output = command.output().await.unwrap();
        let (stdout, stderr) = said(&output);
        for secret in ["hunter2", "trader", TOKEN] {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{args:?}: {stdout}{stderr}");
        }
    }
}

#[tokio::test]
async fn x01_what_follows_an_address_is_quoted_by_no_error() {
    let secret = "K3y-in-the-wrong-place";
    for url in ["https://api.example/v2?key=", "https://api.example/v2#key=", "api.example/v2?a=1&b c="] {
        let url = format!("{url}{secret}");
        for args in [&["replay", "orders.csv", "--base-url", &url][..], &["doctor", "--base-url", &url]] {
            let output = steadfast(args).output().await.unwrap();
            let (stdout, stderr) = said(&output);
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            for piece in [secret, &secret[..8], &secret[8..]] {
                assert!(!stdout.contains(piece) && !stderr.contains(piece), "{args:?}: {stdout}{stderr}");
            }
        }
        let output = steadfast(&["doctor"]).env("STEADFAST_BASE_URL", &url).output().await.unwrap();
        assert!(!said(&output).1.contains(&secret[..8]), "{}", said(&output).1);
    }
}

/// Regression: the password `wrong` was masked in our own sentences, and the key `placed` of the JSON object as well.
#[tokio::test]
async fn x01_a_password_that_is_an_ordinary_word_stays_in_our_own_words_alone() {
    let gateway = OwnGateway::serve(|_| (415, r#"{"s":"error","msg":"placed is wrong"}"#.to_owned())).await;
    let file = orders(1);
    let run = async |args: &[&str], password: &str| {
        let mut command = gateway.command(args);
        command.env_remove("STEADFAST_ACCESS_TOKEN").env("STEADFAST_ACCESS_TOKEN_FILE", "token");
        std::fs::write(file.beside("token"), password).unwrap();
        let output = command.current_dir(file.folder.path()).output().await.unwrap();
        said(&output)
    };
    let (stdout, stderr) = run(&["replay", file.path(), "--yes", "--json"], "placed").await;
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&object["placed"], &object["refused"]), (&0.into(), &1.into()), "{stdout}");
    assert_eq!(object["results"][0]["msg"], "415 *** is wrong", "{stdout}");
    assert!(stderr.contains("placed 0 (0 now, 0 before) refused 1"), "{stderr}");
    let (_, stderr) = run(&["replay", file.path(), "--yes", "--nonsense-nonsense"], "nonsense").await;
    assert!(stderr.contains("unexpected argument"), "{stderr}");
}

/// Regression: 16 of the 20 characters of a token were printed, because a service gave them as an order's identifier.
#[tokio::test]
async fn x01_an_identifier_that_begins_as_a_secret_is_masked() {
    // All of it would be a piece of the key.
    let backwards: String = TOKEN[..13].chars().rev().collect();
    let (begun, piece) = (TOKEN[..16].to_owned(), format!("26{}", &TOKEN[8..16]));
    // Regression: without its first character, or percent-encoded, all of the rest was printed.
    let (cut, percent) = (TOKEN[1..].to_owned(), TOKEN.replace('t', "%74").replace('-', "%2D"));
    let base64 = data_encoding::BASE64URL_NOPAD.encode(TOKEN.as_bytes());
    let ids = [
        begun.clone(),
        format!("1{}", &KEY[..8]),
        piece.clone(),
        backwards.clone(),
        cut.clone(),
        percent.clone(),
        base64.clone(),
    ];
    let gateway = OwnGateway::serve(move |number| placed(&ids[number], "Order placed")).await;
    let file = orders(7);
    let args = ["replay", file.path(), "--yes", "--in-order"];
    let (stdout, stderr) = said(&gateway.command(&args).output().await.unwrap());
    assert_eq!(stdout.matches(",placed,***,,Order placed\n").count(), 5, "{stdout}{stderr}");
    // A piece of eight characters may be there by chance, and backwards nothing is looked for.
    for shown in [&piece, &backwards] {
        assert!(stdout.contains(&format!(",placed,{shown},,Order placed\n")), "{stdout}{stderr}");
    }
    for hidden in [&TOKEN[..8], &KEY[..8], &cut[..12], &percent, &base64] {
        assert!(!stdout.contains(hidden) && !stderr.contains(hidden), "{stdout}{stderr}");
    }
}
