//! A service that quotes the credentials of a request in its answer.

use steadfast::{Access, Client, call::Routes, spec::Paths};
use steadfast_proxy::{Proxy, front::Tokens};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::world::{Line, READER, TOKEN};

const KEY: &str = "key4711abc";
const SECRET: &str = "Secret/token-0815=";
/// The same in other spellings; the last one is cut by a frame's end.
const SPELLED: &str = r"%6bey4711abc Secret\/token-0815\u003d Secret%2ftoken-0815%3d Secret%252Ftoken%2D0815\\u003D S&#101;cret/token-0815&#x3d;";

/// Quotes each request's credentials, with the length of the body told or in chunks.
async fn service(has_length: bool) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(quote(stream, has_length));
        }
    });
    address
}

async fn quote(mut stream: TcpStream, has_length: bool) {
    stream.set_nodelay(true).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let given = head.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap();
    let (first, rest) = given.split_at(given.len() - 5);
    let long = "a list ".repeat(100_000);
    let parts = [
        format!("{{\"s\":\"ok\",\"d\":\"{long}{first}"),
        format!("{rest} {KEY} {}", &SPELLED[..SPELLED.len() - 3]),
        format!("{}\"}}", &SPELLED[SPELLED.len() - 3..]),
    ];
    let framing = if has_length {
        format!("Content-Length: {}", parts.iter().map(String::len).sum::<usize>())
    } else {
        "Transfer-Encoding: chunked".to_owned()
    };
    let named = SECRET.replace('/', "%2F").replace('=', "%3D");
    let head = format!(
        "HTTP/1.1 200 OK for {given}\r\nContent-Type: application/json\r\nX-Echo: {given}\r\nX-Spelled: {SPELLED}\r\nX-{KEY}: 1\r\nX-{named}: 1\r\n{framing}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for part in parts {
        if !has_length {
            stream.write_all(format!("{:x}\r\n", part.len()).as_bytes()).await.unwrap();
        }
        stream.write_all(part.as_bytes()).await.unwrap();
        if !has_length {
            stream.write_all(b"\r\n").await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    if !has_length {
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    }
}

fn without_chunks(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        text.push_str(&rest[..length]);
        body = &rest[length + 2..];
    }
    text
}

#[tokio::test]
async fn no_caller_gets_the_accounts_credentials() {
    for has_length in [true, false] {
        let base: steadfast::BaseUrl = format!("http://{}/v2", service(has_length).await).parse().unwrap();
        let client = Client::builder(base.clone(), Access::token(KEY, SECRET).unwrap())
            .routes(Routes::new(&Paths::public()).guard_unknown())
            .build()
            .unwrap();
        let tokens = Tokens::new(TOKEN).unwrap().reader(READER).unwrap();
        let proxy = Proxy::new(client, base, &Paths::public(), tokens);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { proxy.serve(listener, std::future::pending()).await });
        let mut line = Line(TcpStream::connect(address).await.unwrap());
        let request = format!(
            "GET /v2/api/oms/history HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {READER}\r\nConnection: close\r\n\r\n"
        );
        line.send(request.as_bytes()).await;
        let mut answer = String::new();
        line.0.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{}", &answer[..300]);
        assert!(!answer.contains(KEY) && !answer.contains(SECRET) && !answer.contains("Secret/"));
        assert!(!answer.contains("secret%2ftoken"), "a name of a header holds the token");
        let hidden = format!("{}:{}", "*".repeat(KEY.len()), "*".repeat(SECRET.len()));
        assert!(answer.contains(&format!("x-echo: Bearer {hidden}\r\n")));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = match length {
            Some(length) => {
                assert_eq!(length.parse::<usize>().unwrap(), body.len());
                body.to_owned()
            }
            None => without_chunks(body),
        };
        let spelled: Vec<_> = SPELLED.split(' ').map(|text| "*".repeat(text.len())).collect();
        let spelled = spelled.join(" ");
        assert!(head.contains(&format!("x-spelled: {spelled}\r\n")), "{head}");
        let key = "*".repeat(KEY.len());
        assert!(
            body.ends_with(&format!("a list Bearer {hidden} {key} {spelled}\"}}")),
            "{}",
            &body[700_000..]
        );
        assert_eq!(length.is_some(), has_length);
    }
}
