//! The config file: what it may hold, what goes before it, and what is never read from it.

use std::{fs, path::Path};

use tokio::process::Command;

use crate::{
    account::{User, code, stderr, stdout},
    command::{output, steadfast},
    files::orders,
};

/// Returns a command with nothing in its environment, and with a config file of this text.
fn with(folder: &Path, text: &str, args: &[&str]) -> Command {
    let path = folder.join("steadfast.toml");
    write(&path, text);
    let mut command = steadfast(args);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("XDG_STATE_HOME", folder.join("state")).arg("--config").arg(path);
    command
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    mode(path, 0o600);
}

#[cfg(unix)]
fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn mode(_: &Path, _: u32) {}

#[tokio::test]
async fn the_example_of_the_page_can_be_used() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sidecar.md")).unwrap();
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    let folder = tempfile::tempdir().unwrap();
    for example in examples {
        let path = folder.path().join("example.toml");
        fs::write(&path, example).unwrap();
        let checked = output(&["check-config", path.to_str().unwrap()]).await;
        assert_eq!(code(&checked), 0, "{}", stderr(&checked));
    }
}

#[tokio::test]
async fn each_fault_of_a_file_is_named_and_nothing_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steadfast.toml");
    let text = "base-url = \"nonsense\"\nlog = \"a=b=c\"\n[proxy]\nport = 70000\ndrian = 5\n";
    write(&path, text);
    let checked = output(&["check-config", path.to_str().unwrap()]).await;
    // A key that is not known may be the one that matters, so values wait.
    let unknown = format!("{}:5: unknown key \"drian\" in [proxy]: did you mean drain?", path.display());
    assert_eq!((code(&checked), stderr(&checked).contains(&unknown)), (2, true), "{}", stderr(&checked));

    write(&path, &text.replace("drian", "drain"));
    let checked = output(&["check-config", path.to_str().unwrap()]).await;
    for (line, what) in [(1, "base-url: "), (2, "log: "), (4, "port: 70000 is not in 0..=65535")] {
        let told = format!("{}:{line}: {what}", path.display());
        assert!(stderr(&checked).contains(&told), "{told}: {}", stderr(&checked));
    }
    let started = steadfast(&["proxy", "--sandbox", "--config", path.to_str().unwrap()]).output().await;
    assert_eq!(code(&started.unwrap()), 2);

    // Regression: it passed, and `proxy` refused it.
    write(&path, "base-url = \"http://api.example/v2\"\n");
    let checked = output(&["check-config", path.to_str().unwrap()]).await;
    let told = format!("{}:1: base-url: base url is clear-text http to another machine", path.display());
    assert!(code(&checked) == 2 && stderr(&checked).contains(&told), "{}", stderr(&checked));

    write(&path, "[proxy]\nport = 0\nlisten = \"unix:/tmp/none/x\"\n");
    let checked = output(&["check-config", path.to_str().unwrap()]).await;
    assert!(stderr(&checked).contains(":3: listen cannot be used with port"), "{}", stderr(&checked));
    let missing = folder.path().join("missing.toml");
    assert_eq!(code(&output(&["check-config", missing.to_str().unwrap()]).await), 2);
}

#[tokio::test]
async fn a_value_holds_from_the_first_that_has_it_and_its_origin_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = "store = \"/file/store\"\nbase-url = \"http://127.0.0.1:1/v2\"\npassword-file = \"/none\"\n\
        api-key = \"key-of-the-file\"\n[proxy]\nport = 1234\ndrain = 7\n";
    let mut command = with(folder.path(), text, &["proxy", "--drain", "9", "--print-config"]);
    command.env("STEADFAST_STORE", "/env/store").env("STEADFAST_PASSWORD_COMMAND", "echo of-env");
    let credentials = folder.path().join("credentials");
    fs::create_dir(&credentials).unwrap();
    fs::write(credentials.join("totp-secret"), "of-systemd").unwrap();
    command.env("CREDENTIALS_DIRECTORY", &credentials);
    let shown = command.output().await.unwrap();
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    let file = folder.path().join("steadfast.toml").display().to_string();
    for line in [
        "store = \"/env/store\" # STEADFAST_STORE".to_owned(),
        format!("base-url = \"http://127.0.0.1:1/v2\" # {file}:2"),
        "password = \"***\" # STEADFAST_PASSWORD_COMMAND".to_owned(),
        format!("api-key = \"***\" # {file}:4: api-key"),
        "totp-secret = \"***\" # credential totp-secret".to_owned(),
        "# access-token is not set".to_owned(),
        format!("port = 1234 # {file}:6"),
        "drain = 9 # --drain".to_owned(),
        "admin-port = 0 # default".to_owned(),
    ] {
        assert!(stdout(&shown).lines().any(|shown| shown == line), "{line}: {}", stdout(&shown));
    }
    for secret in ["of-env", "key-of-the-file", "of-systemd"] {
        assert!(!stdout(&shown).contains(secret), "{}", stdout(&shown));
    }
    // An option of the command line rules out those of the file that it excludes.
    let listen = "[proxy]\nlisten = \"unix:/tmp/none/x\"\n";
    let shown = with(folder.path(), listen, &["proxy", "--sandbox", "--port", "0", "--print-config"]);
    let shown = { shown }.output().await.unwrap();
    assert!(stdout(&shown).contains("# listen is not set"), "{}{}", stdout(&shown), stderr(&shown));
}

#[tokio::test]
async fn zones_are_told_with_their_origin_and_each_fault_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = "base-url = \"http://127.0.0.1:1/v2\"\n[zones.general]\nlimits = [\"5/s\"]\nheadroom = 1\n\
        [zones.place_order]\nprofile = \"window-log\"\n";
    let file = folder.path().join("steadfast.toml").display().to_string();
    for verb in [&["proxy", "--print-config"][..], &["replay", "none.csv", "--print-config"]] {
        let shown = { with(folder.path(), text, verb) }.output().await.unwrap();
        let shown = format!("{}{}", stdout(&shown), stderr(&shown));
        let zones: Vec<&str> = shown.lines().skip_while(|line| *line != "[zones.general]").take(5).collect();
        let limits = format!("limits = [\"5/s\", \"400/min\"] # {file}:3");
        let headroom = format!("headroom = 1 # {file}:4");
        let of_general =
            ["[zones.general]", &headroom, &limits, "# profile is not set", "# settle is not set"];
        assert_eq!(zones, of_general, "{shown}");
        assert!(shown.contains(&format!("profile = \"window-log\" # {file}:6\n")), "{shown}");
        assert!(
            shown.contains("[zones.otp]\n# headroom is not set\nlimits = [\"3/s\"] # default\n"),
            "{shown}"
        );
    }
    let bad = text.replace("headroom = 1", "headroom = 5").replace("window-log", "windowlog");
    write(Path::new(&file), &bad);
    let checked = output(&["check-config", &file]).await;
    for told in [
        format!("{file}:4: headroom: headroom of zone general leaves nothing of a window"),
        format!("{file}:6: profile: unknown profile \"windowlog\": did you mean window-log?"),
    ] {
        assert!(code(&checked) == 2 && stderr(&checked).contains(&told), "{told}: {}", stderr(&checked));
    }
}

/// Regression: `orders` did not know of the sidecar's journal, which the same file names.
#[tokio::test]
async fn orders_looks_into_the_sidecars_journal_unless_it_has_one_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steadfast.toml").display().to_string();
    let shown = async |text: &str, more: &[&str]| {
        let args = [&["orders", "unresolved", "--print-config"], more].concat();
        stdout(&{ with(folder.path(), text, &args) }.output().await.unwrap())
    };
    let sidecars = "[proxy]\njournal = \"/of/the/sidecar\"\n";
    let told = shown(sidecars, &[]).await;
    assert!(told.contains(&format!("journal = \"/of/the/sidecar\" # {file}:2")), "{told}");
    let both = format!("{sidecars}[orders]\njournal = \"/own\"\n");
    assert!(shown(&both, &[]).await.contains(&format!("journal = \"/own\" # {file}:4")));
    assert!(shown(&both, &["--journal", "/given"]).await.contains("journal = \"/given\" # --journal"));
}

#[tokio::test]
async fn secrets_of_the_file_serve_all_verbs() {
    let (user, file) = (User::new().await, orders(1));
    let fact = |name: &str| user.sandbox.fact(name);
    let token = user.file("token");
    fs::write(&token, format!("{}\n", fact("access_token"))).unwrap();
    let text = format!(
        "base-url = \"{}\"\nstore = \"{}\"\napi-key-command = \"echo {}\"\naccess-token-file = \"{}\"\n",
        fact("base_url"),
        user.store().display(),
        fact("api_key"),
        token.display()
    );
    let (folder, replay) = (file.folder.path(), ["replay", file.path(), "--yes"]);
    let given = with(folder, &text, &["auth", "token"]).output().await.unwrap();
    assert_eq!((code(&given), stdout(&given).trim()), (0, fact("access_token")), "{}", stderr(&given));
    let placed = with(folder, &text, &replay).output().await.unwrap();
    assert_eq!(code(&placed), 0, "{}", stderr(&placed));
    // A variable goes before the file.
    let mut command = with(folder, &text, &["auth", "token"]);
    let given = command.env("STEADFAST_ACCESS_TOKEN", "another-token").output().await.unwrap();
    assert_eq!(stdout(&given).trim(), "another-token");
}

/// A file may have been written for another verb, so it does not make a replay real without a word.
#[tokio::test]
async fn a_service_that_only_the_file_names_gets_no_orders_without_a_word() {
    let (user, file) = (User::new().await, orders(1));
    let text = format!(
        "base-url = \"{}\"\napi-key = \"{}\"\naccess-token = \"{}\"\n",
        user.sandbox.fact("base_url"),
        user.sandbox.fact("api_key"),
        user.sandbox.fact("access_token")
    );
    let asked = with(file.folder.path(), &text, &["replay", file.path()]).output().await.unwrap();
    assert_eq!(code(&asked), 2, "{}", stderr(&asked));
    assert!(stderr(&asked).contains("nothing was sent"), "{}", stderr(&asked));
    let rehearsal = ["replay", file.path(), "--sandbox"];
    let rehearsed = with(file.folder.path(), &text, &rehearsal).output().await.unwrap();
    assert!(stderr(&rehearsed).contains("REHEARSAL"), "{}", stderr(&rehearsed));
}

#[tokio::test]
async fn a_sandbox_leaves_the_accounts_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("real.journal");
    let text = format!(
        "base-url = \"http://127.0.0.1:1/v2\"\n[proxy]\njournal = \"{0}\"\ntoken-file = \"{0}.token\"\n",
        journal.display()
    );
    let mut command = with(folder.path(), &text, &["exec", "--sandbox"]);
    let ended = command.args(["--", "true"]).output().await.unwrap();
    assert_eq!(code(&ended), 0, "{}", stderr(&ended));
    assert!(!journal.exists() && !folder.path().join("real.journal.token").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_may_read_or_change_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steadfast.toml");
    let check = async |text: &str, open: u32| {
        fs::write(&path, text).unwrap();
        mode(&path, open);
        let checked = output(&["check-config", path.to_str().unwrap()]).await;
        (code(&checked), stderr(&checked))
    };
    let (secret, place) = ("password = \"hunter2\"\n", "password-file = \"/none\"\n");
    for (text, open, ends) in [(secret, 0o600, 0), (secret, 0o640, 2), (place, 0o644, 0), (place, 0o664, 2)] {
        let (code, told) = check(text, open).await;
        assert_eq!(code, ends, "{open:o}: {told}");
        assert!(!told.contains("hunter2"), "{told}");
        assert!(ends == 0 || told.contains("chmod go-"), "{told}");
    }
}

/// Regression: a reload waited for a pipe, and no cancel was answered meanwhile.
#[cfg(unix)]
#[tokio::test]
async fn a_config_that_is_no_file_or_too_long_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, long) = (folder.path().join("pipe.toml"), folder.path().join("long.toml"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    write(&long, &"# long\n".repeat(200_000));
    for (path, why) in [(pipe, "it is no regular file"), (long, "it has 1400000 bytes")] {
        let checked = output(&["check-config", path.to_str().unwrap()]).await;
        assert_eq!((code(&checked), stderr(&checked).contains(why)), (2, true), "{}", stderr(&checked));
    }
}

/// Regression: each line of the file was at fault for a variable that could not be used. One that is no address of a service
/// must not give way to the file's either: it may be a rehearsal's.
#[tokio::test]
async fn a_variable_that_cannot_be_used_is_named_and_no_line_is_blamed() {
    let (folder, file) = (tempfile::tempdir().unwrap(), orders(1));
    let text =
        "base-url = \"http://127.0.0.1:1/v2\"\napi-key = \"key-0123456789abcdef\"\naccess-token = \"t\"\n";
    let replay = ["replay", file.path(), "--yes"];
    for args in [&["doctor"][..], &["login"], &["proxy"], &["auth", "status"], &replay] {
        for wrong in ["http://127.0.0.1:1", "nonsense"] {
            let output =
                with(folder.path(), text, args).env("STEADFAST_BASE_URL", wrong).output().await.unwrap();
            let told = stderr(&output);
            assert_eq!(code(&output), 2, "{args:?}: {told}");
            assert!(
                told.contains("STEADFAST_BASE_URL") && !told.contains("steadfast.toml"),
                "{args:?}: {told}"
            );
        }
    }
    let wrong = [&["doctor"][..], &["--base-url", "nonsense"]].concat();
    let output =
        with(folder.path(), text, &wrong).env("STEADFAST_BASE_URL", "nonsense").output().await.unwrap();
    assert!(code(&output) == 2 && !stderr(&output).contains("STEADFAST_BASE_URL"), "{}", stderr(&output));
}
