//! The needs of a shell, a person with a manual and a script: completions, manual pages, and a wait for a server.

use std::fs;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::Command,
    time::Instant,
};

use crate::{
    command::{RunningSandbox, output},
    files::said,
};

/// The verbs, as the help lists them.
async fn verbs() -> Vec<String> {
    let help = said(&output(&["--help"]).await).0;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|it| !it.is_empty());
    let verbs =
        lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|it| !it.is_empty());
    verbs.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_shell_gets_a_script_that_knows_every_verb() {
    let verbs = verbs().await;
    assert!(verbs.contains(&"replay".to_owned()) && verbs.len() > 10, "{verbs:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = output(&["completions", shell]).await;
        let script = said(&output).0;
        assert!(output.status.success() && output.stderr.is_empty());
        for verb in &verbs {
            assert!(script.contains(verb.as_str()), "{shell}: {verb}");
        }
    }
    assert_eq!(output(&["completions", "tcsh"]).await.status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bash_completes_a_verb_and_an_option() {
    const ASK: &str = r#"source /dev/stdin; ask() { COMP_WORDS=(steadfast "$@"); COMP_CWORD=$#
        COMPREPLY=(); _steadfast steadfast "${!#}" "${COMP_WORDS[-2]}"; echo "${COMPREPLY[@]}"; }
        ask rep; ask sandbox --cor; ask completions z"#;
    let script = output(&["completions", "bash"]).await.stdout;
    let mut bash = Command::new("bash");
    bash.args(["-c", ASK]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    bash.stdin.take().unwrap().write_all(&script).await.unwrap();
    let completed = String::from_utf8(bash.wait_with_output().await.unwrap().stdout).unwrap();
    assert_eq!(completed, "replay\n--cors\nzsh\n");
}

#[tokio::test]
async fn each_verb_has_a_manual_page() {
    let page = said(&output(&["man"]).await).0;
    assert!(
        page.contains(".TH steadfast 1") && page.contains("sandbox") && page.contains("Exit codes"),
        "{page}"
    );
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("man1");
    let written = output(&["man", "--out", folder.to_str().unwrap()]).await;
    assert!(written.status.success() && written.stdout.is_empty());
    for verb in verbs().await.iter().filter(|verb| *verb != "help") {
        let page = fs::read_to_string(folder.join(format!("steadfast-{verb}.1"))).unwrap();
        assert!(page.contains(&format!("steadfast\\-{}", verb.replace('-', "\\-"))), "{page}");
    }
    assert!(folder.join("steadfast.1").exists() && folder.join("steadfast-orders-verify.1").exists());
    // A folder that cannot be made is an error, not a panic.
    let below_a_file = folder.join("steadfast.1/man");
    assert_eq!(output(&["man", "--out", below_a_file.to_str().unwrap()]).await.status.code(), Some(1));
}

#[tokio::test]
async fn a_script_waits_for_a_server_that_comes() {
    let sandbox = RunningSandbox::start(&[]).await;
    let there = output(&["wait", sandbox.fact("base_url"), "--within", "5"]).await;
    assert_eq!((there.status.code(), said(&there)), (Some(0), (String::new(), String::new())));
    // The sandbox has no `/readyz`.
    let other = output(&["wait", sandbox.fact("base_url"), "--ready", "--within", "1"]).await;
    assert_eq!(other.status.code(), Some(7));
    assert!(said(&other).1.contains("/readyz has not answered with 200: it answers 404"), "{other:?}");

    // Free a moment ago, and taken again while the command waits.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/v2");
    let gone = output(&["wait", &url, "--within", "1"]).await;
    assert_eq!(gone.status.code(), Some(7));
    assert!(said(&gone).1.contains("nothing listens there"), "{gone:?}");
    let waiting = tokio::spawn(async move { output(&["wait", &url, "--within", "60"]).await });
    let listener = TcpListener::bind(address).await.unwrap();
    for status in ["503 Service Unavailable", "200 OK"] {
        let (mut line, _) = listener.accept().await.unwrap();
        let _ = line.read(&mut [0; 1_024]).await.unwrap();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        line.write_all(answer.as_bytes()).await.unwrap();
    }
    assert_eq!(waiting.await.unwrap().status.code(), Some(0), "after a 503, too");
}

#[tokio::test]
async fn a_wait_ends_in_time_at_a_server_that_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let begun = Instant::now();
    let silent = output(&["wait", &url, "--within", "1"]).await;
    assert_eq!(silent.status.code(), Some(7));
    assert!(said(&silent).1.contains("no answer in time"), "{silent:?}");
    assert!(begun.elapsed().as_secs() < 10);
    for wrong in ["127.0.0.1:8080", "/livez", "https://127.0.0.1", "http://user:hunter2@127.0.0.1"] {
        let refused = output(&["wait", wrong]).await;
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
        assert!(!said(&refused).1.contains("hunter2"), "{refused:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_script_for_packages_puts_every_file_into_its_place() {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_steadfast")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut install = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/install-docs"));
    install.arg("/usr").env("PATH", path).env("DESTDIR", folder.path());
    assert!(install.status().await.unwrap().success());
    let share = folder.path().join("usr/share");
    for (file, begins) in [
        ("bash-completion/completions/steadfast", "_steadfast() {"),
        ("fish/vendor_completions.d/steadfast.fish", "#"),
        ("zsh/site-functions/_steadfast", "#compdef steadfast"),
        ("man/man1/steadfast-replay.1", ".ie"),
    ] {
        let text = fs::read_to_string(share.join(file)).unwrap();
        assert!(text.starts_with(begins), "{file}: {text}");
    }
}
