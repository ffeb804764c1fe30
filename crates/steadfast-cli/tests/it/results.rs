//! C4: a file of results replaces other files only once it is complete.

use crate::{
    files::{file, orders, said},
    own_gateway::{OwnGateway, documented, listed, placed},
};

async fn gateway() -> OwnGateway {
    OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await
}

#[tokio::test]
async fn c04_results_of_yesterday_stay_when_nothing_comes_of_a_run() {
    let (gateway, orders) = (gateway().await, orders(1));
    let (results, bad) = (orders.beside("results.csv"), file("symId;qty\n"));
    let yesterday = "line,status,orderId,resolution,msg\n2,placed,7,,yesterday\n";
    std::fs::write(&results, yesterday).unwrap();
    for args in [
        &["replay", bad.path(), "--yes", "--out", &results][..],
        &["replay", orders.path(), "--out", &results],
        &["replay", orders.path(), "--yes", "--journal", bad.path(), "--out", &results],
    ] {
        let output = gateway.command(args).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output).1);
        assert_eq!(std::fs::read_to_string(&results).unwrap(), yesterday, "{args:?}");
    }
    assert_eq!(gateway.orders().len(), 0);
    let output =
        gateway.command(&["replay", orders.path(), "--yes", "--out", &results]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    assert!(std::fs::read_to_string(&results).unwrap().contains("\n2,placed,260,,Order placed\n"));
}

#[tokio::test]
async fn c04_results_are_not_written_over_the_orders_or_their_journal() {
    let (gateway, orders) = (gateway().await, orders(1));
    let before = std::fs::read_to_string(orders.path()).unwrap();
    let link = orders.beside("link");
    std::fs::hard_link(orders.path(), &link).unwrap();
    for out in [orders.path().to_owned(), link, orders.beside("orders.csv.journal")] {
        let output =
            gateway.command(&["replay", orders.path(), "--yes", "--out", &out]).output().await.unwrap();
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{out}: {stderr}");
        assert!(stderr.contains("would overwrite"), "{stderr}");
    }
    assert_eq!(std::fs::read_to_string(orders.path()).unwrap(), before);
    assert_eq!(gateway.orders().len(), 0);
}

/// One of them was the credential store, which counted the failed logins.
#[tokio::test]
async fn c04_results_take_the_place_of_nothing_but_results() {
    let (gateway, orders) = (gateway().await, orders(1));
    let store = orders.beside("auth.json");
    std::fs::write(&store, "{}\n").unwrap();
    let endings = [".limits.lock", ".new", ".lock", ".events.seen", ".limits.new"];
    let mut outs: Vec<String> = endings.map(|ending| orders.beside("orders.csv.journal") + ending).into();
    outs.extend([store.clone(), store.clone() + ".lock"]);
    for (number, out) in outs.iter().enumerate() {
        let args = ["replay", orders.path(), "--yes", "--out", out];
        let args = if number < 6 { args.to_vec() } else { [&args[..], &["--store", &store]].concat() };
        let output = gateway.command(&args).output().await.unwrap();
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{out}: {stderr}");
        assert!(stderr.contains("nothing was sent"), "{out}: {stderr}");
    }
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "{}\n");
    assert_eq!(gateway.orders().len(), 0);
}

/// The run waited for a reader for ever, and only SIGKILL ended it.
#[cfg(unix)]
#[tokio::test]
async fn c04_results_to_a_pipe_with_a_name_are_refused_before_anything_is_sent() {
    let (gateway, orders) = (gateway().await, orders(1));
    let pipe = orders.beside("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (args, named) in [(["--out", &pipe], "--out "), (["--journal", &pipe], "journal ")] {
        let args = [&["replay", orders.path(), "--yes"], &args[..]].concat();
        let run = gateway.command(&args).output();
        let output = tokio::time::timeout(std::time::Duration::from_secs(20), run).await.unwrap().unwrap();
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(&format!("{named}{pipe} is n")), "{stderr}");
    }
    assert_eq!(gateway.orders().len(), 0);
    // The command's own output may be a pipe, because it has a reader.
    let args = ["replay", orders.path(), "--yes", "--out", "/dev/stdout"];
    let output = gateway.command(&args).output().await.unwrap();
    assert!(said(&output).0.contains("\n2,placed,260,,Order placed\n"), "{:?}", said(&output));
}

/// The incomplete file was put in place: 4096 bytes, which ended inside of a row.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn c04_results_that_a_full_disk_cuts_are_printed_and_put_nowhere() {
    let disk = "mount -t tmpfs -o size=8k none \"$DISK\" && printf 'line,status,orderId,resolution,msg\\n' >\"$DISK/r.csv\"";
    let mut probe = std::process::Command::new("unshare");
    let (folder, own) = (tempfile::tempdir().unwrap(), format!("{disk} && true"));
    let probe = probe.args(["-rm", "sh", "-c", &own]).env("DISK", folder.path()).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        eprintln!("skipped: this machine lets nobody mount a disk of his own");
        return;
    }
    let text = "m".repeat(500);
    let gateway = OwnGateway::serve(move |number| placed(&format!("26{number}"), &text)).await;
    let orders = orders(40);
    let script = format!(
        "{disk} && {{ \"$0\" replay \"$1\" --yes --out \"$DISK/r.csv\"; code=$?; }}; cat \"$DISK/r.csv\" >&3; ls \"$DISK\" >&3; exit $code"
    );
    let kept = folder.path().join("kept");
    let script = format!("exec 3>\"$KEPT\"; {script}");
    let mut command = gateway.shell("unshare");
    command.args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_steadfast"), orders.path()]);
    let disk = orders.beside("disk");
    std::fs::create_dir(&disk).unwrap();
    let output = command.env("DISK", &disk).env("KEPT", &kept).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("results cannot be written: "), "{stderr}");
    // The earlier contents are kept, and no other file remains.
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "line,status,orderId,resolution,msg\nr.csv\n");
    let sent = gateway.orders().len();
    assert_eq!(stdout.lines().count(), 41, "{stdout}");
    assert_eq!(stdout.matches(",placed,26").count(), sent, "{stdout}");
    assert!((8..40).contains(&sent), "nothing is sent whose result nobody may see: {sent}");
}

/// Regression: it was counted as placed now, by a run that had sent nothing.
#[tokio::test]
async fn c03_an_order_that_was_refused_and_found_is_counted_as_placed_before() {
    for status in [403, 429] {
        let refused = move |_| documented(status);
        let list =
            |sent| if sent == 0 { "[]".to_owned() } else { serde_json::json!([listed("77", 1)]).to_string() };
        let (gateway, file) = (OwnGateway::with_list(refused, list).await, orders(1));
        let replay =
            async || said(&gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap());
        let (stdout, stderr) = replay().await;
        assert_eq!(gateway.orders().len(), 1, "{status} {stdout}{stderr}");
        let (stdout, stderr) = replay().await;
        assert!(stdout.contains("2,placed,77,"), "{status} {stdout}{stderr}");
        assert!(stderr.contains("placed 1 (0 now, 1 before)"), "{status} {stdout}{stderr}");
        assert_eq!(gateway.orders().len(), 1, "{status}");
    }
}

/// Regression: it was called a new journal.
#[tokio::test]
async fn c02_a_journal_of_refused_orders_is_not_new() {
    let (gateway, orders) = (OwnGateway::serve(|_| documented(403)).await, orders(2));
    let journal = orders.beside("orders.csv.journal");
    for told in ["new journal {}: every row is sent", "\njournal {}: none of its rows is placed or in doubt"]
    {
        let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
        let stderr = said(&output).1;
        assert!(stderr.contains(&told.replace("{}", &journal)), "{stderr}");
    }
    assert_eq!(gateway.orders().len(), 4);
}

/// Regression: the object had the counts, and named the lines of unconfirmed rows alone.
#[tokio::test]
async fn c09_the_json_of_a_run_holds_each_row_once_with_its_end() {
    let answer = |number| match number {
        0 => placed("260000000001", "Order placed"),
        1 => documented(403),
        _ => documented(401),
    };
    let (gateway, file) = (OwnGateway::serve(answer).await, orders(2));
    file.append("EQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,\n");
    file.append(&"EQT_TCS_EQ_NSE,9,sell,market,intraday,day,,\n".repeat(2));
    let args = ["replay", file.path(), "--yes", "--in-order", "--json"];
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    // The list is read with the token, so that this is good.
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let rows: Vec<_> = object["results"].as_array().unwrap().iter().collect();
    let ends: Vec<_> =
        rows.iter().map(|row| (row["line"].as_u64().unwrap(), row["status"].as_str().unwrap())).collect();
    let expected = [(2, "placed"), (3, "refused"), (4, "bad"), (5, "not executed"), (6, "not executed")];
    assert_eq!(ends, expected, "{stdout}");
    assert_eq!((&rows[0]["orderId"], &rows[1]["orderId"]), (&"260000000001".into(), &().into()), "{stdout}");
    assert_eq!(rows[1]["msg"], format!("403 {}", msg_of(403)), "{stdout}");
    let words = ["placed", "refused", "bad", "not_executed", "not_sent", "not_observed", "unresolved"];
    let sum: u64 = words.iter().map(|word| object[word].as_u64().unwrap()).sum();
    assert_eq!((sum, object["rows"].as_u64()), (5, Some(5)), "{stdout}");
    assert_eq!(object["in_doubt_without_row"], 0, "{stdout}");
}

fn msg_of(status: u16) -> String {
    let body: serde_json::Value = serde_json::from_str(&documented(status).1).unwrap();
    body["msg"].as_str().unwrap().to_owned()
}
