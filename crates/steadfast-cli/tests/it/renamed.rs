//! O7: a file of orders under another name is not placed a second time.

use std::{fs, time::Duration};

use steadfast::dedup::{Settings, TradingDay};
use steadfast_call::WallClock;

use crate::{
    files::{orders, said},
    journals::left_in_doubt,
    own_gateway::{OwnGateway, placed},
};

/// The journal was looked for beside the name, so another name of the same file had none, and all was placed again.
#[tokio::test]
async fn o07_a_file_that_was_renamed_is_not_placed_again() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(2);
    let first = said(&gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap()).1;
    let journal = file.beside("orders.csv.journal");
    assert!(first.contains(&format!("new journal {journal}: every row is sent")), "{first}");
    assert_eq!(gateway.orders().len(), 2);

    let other = file.beside("monday.csv");
    fs::rename(file.path(), &other).unwrap();
    let output = gateway.command(&["replay", &other, "--yes"]).output().await.unwrap();
    let told = said(&output).1;
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains(&format!("go on with it by --journal {journal}")), "{told}");
    let output = gateway.command(&["replay", &other, "--yes", "--journal", &journal]).output().await.unwrap();
    let told = said(&output).1;
    assert!(
        told.contains(&format!("\njournal {journal}: rows that are placed or in doubt are not sent again")),
        "{told}"
    );
    assert_eq!(gateway.orders().len(), 2, "{told}");

    // It has that journal from now on, and a file under the old name has none.
    fs::copy(&other, file.path()).unwrap();
    for path in [&*other, file.path()] {
        let output = gateway.command(&["replay", path, "--yes"]).output().await.unwrap();
        assert_eq!((output.status.code(), gateway.orders().len()), (Some(2), 2), "{}", said(&output).1);
    }
    // Two files in the same folder are different files, even with equal contents.
    let copy = file.beside("tuesday.csv");
    fs::copy(&other, &copy).unwrap();
    gateway.command(&["replay", &copy, "--yes"]).output().await.unwrap();
    assert_eq!(gateway.orders().len(), 4);
}

#[cfg(unix)]
#[tokio::test]
async fn o07_a_file_that_a_link_leads_to_has_one_journal() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(2);
    let link = file.beside("today.csv");
    std::os::unix::fs::symlink(file.path(), &link).unwrap();
    for path in [&*link, file.path(), &link] {
        gateway.command(&["replay", path, "--yes"]).output().await.unwrap();
    }
    assert_eq!(gateway.orders().len(), 2);
    assert!(!fs::exists(file.beside("today.csv.journal")).unwrap());
    // An older version put it beside the link.
    fs::rename(file.beside("orders.csv.journal"), file.beside("today.csv.journal")).unwrap();
    let output = gateway.command(&["replay", &link, "--yes"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output).1);
    assert_eq!(gateway.orders().len(), 2);
}

/// The afternoon's orders were reported as placed, and were not.
#[tokio::test]
async fn o07_equal_rows_of_another_file_are_not_taken_for_placed() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(2);
    let (journal, other) = (file.beside("shared.j"), file.beside("q.csv"));
    let run = async |path: &str, more: &[&str], journal: Option<&str>| {
        let mut command = gateway.command(&[&["replay", path, "--yes"], more].concat());
        command.envs(journal.map(|journal| ("STEADFAST_JOURNAL", journal)));
        let output = command.output().await.unwrap();
        (output.status.code(), said(&output).1)
    };
    assert_eq!(run(file.path(), &[], Some(&journal)).await.0, Some(0));
    fs::copy(file.path(), &other).unwrap();
    for (more, variable) in [(&[][..], Some(&*journal)), (&["--journal", &journal], None)] {
        let (code, told) = run(&other, more, variable).await;
        assert_eq!(code, Some(2), "{told}");
        let itself = fs::canonicalize(file.path()).unwrap();
        let named =
            format!("holds what was sent of {}, and not of {other}: nothing was sent", itself.display());
        assert!(told.contains(&named), "{told}");
    }
    assert_eq!(gateway.orders().len(), 2);
    // The file itself can continue, and the other one can under a journal of its own.
    assert_eq!(run(file.path(), &[], Some(&journal)).await.0, Some(0));
    assert_eq!(gateway.orders().len(), 2);
    assert_eq!(run(&other, &[], None).await.0, Some(0));
    assert_eq!(gateway.orders().len(), 4);

    // A renamed file can continue if the command line says so.
    let renamed = file.beside("renamed.csv");
    fs::rename(file.path(), &renamed).unwrap();
    let (code, told) = run(&renamed, &[], Some(&journal)).await;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains(&format!("go on with it by --journal {journal}")), "{told}");
    let (code, told) = run(&renamed, &["--journal", &journal], None).await;
    // The list shows the other file's orders by now, which are equal and in another journal.
    assert_eq!(code, Some(6), "{told}");
    assert!(told.contains("excess orders: 2"), "{told}");
    assert!(told.contains(&format!("which is gone: {renamed} is taken for it")), "{told}");
    assert_eq!(gateway.orders().len(), 4);
}

/// Without the variable another journal was looked for and not found.
#[tokio::test]
async fn o07_a_file_is_not_placed_again_under_another_journal() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    for [first, second] in [[Some("shared.j"), None], [None, Some("shared.j")], [Some("a.j"), Some("b.j")]] {
        let (file, before) = (orders(2), gateway.orders().len());
        let run = async |journal: Option<&str>, more: &[&str]| {
            let mut command = gateway.command(&[&["replay", file.path(), "--yes"], more].concat());
            command.envs(journal.map(|journal| ("STEADFAST_JOURNAL", file.beside(journal))));
            let output = command.output().await.unwrap();
            (output.status.code(), said(&output).1)
        };
        let path = |journal: Option<&str>| file.beside(journal.unwrap_or("orders.csv.journal"));
        assert_eq!(run(first, &[]).await.0, Some(0));
        let (code, told) = run(second, &[]).await;
        assert_eq!((code, gateway.orders().len()), (Some(2), before + 2), "{told}");
        let itself = fs::canonicalize(path(first)).unwrap();
        let named = format!("journal {} tells what was sent of", itself.display());
        assert!(told.contains(&named) && told.contains("nothing was sent"), "{told}");
        // The advice continues with what was sent. Only an explicit journal sends it again.
        let (code, told) = run(second, &["--journal", &itself.display().to_string()]).await;
        assert_eq!((code, gateway.orders().len()), (Some(0), before + 2), "{told}");
        let (code, told) = run(second, &["--journal", &path(second)]).await;
        assert_eq!((code, gateway.orders().len()), (Some(0), before + 4), "{told}");
    }
}

/// A gateway's clock was a day ahead, so sent orders were recorded under tomorrow. A file that was then renamed, or
/// that followed the advice for another day's journal, was placed a second time.
#[tokio::test]
async fn o07_nothing_is_sent_while_the_service_says_another_day() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    // Around midnight both days are valid.
    let now = WallClock::system().now();
    let of_day = Settings::default().day_of(now + Duration::from_secs(1_200));
    let near = of_day != Settings::default().day_of(now - Duration::from_secs(1_200));
    gateway.is_ahead(Duration::from_secs(if near { 26 } else { 24 } * 3_600));
    let file = orders(2);
    let run = async || {
        let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let (code, (rows, told)) = run().await;
    assert_eq!((code, gateway.orders().len()), (Some(1), 0), "{rows}{told}");
    let why = "time by the machine's clock is not the service's";
    assert_eq!(rows.lines().filter(|row| row.contains(why)).count(), 2, "{rows}{told}");
    // Regression: it said that the machine's clock was set, or is wrong.
    let (_, differ) = told.split_once("clocks differ: the machine's is ").unwrap_or_else(|| panic!("{told}"));
    let (by, _) = differ.split_once(" min behind the time known so far").unwrap_or_else(|| panic!("{told}"));
    assert!((1_439..=1_560).contains(&by.parse::<u32>().unwrap()), "{told}");
    gateway.is_ahead(Duration::ZERO);
    let (code, (rows, told)) = run().await;
    assert_eq!((code, gateway.orders().len()), (Some(0), 2), "{rows}{told}");
}

/// The advice was to remove the journal, and the next run then required it.
#[tokio::test]
async fn o07_the_advice_for_another_days_journal_leads_on() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    for moved in [&["", ".lock"][..], &["", "", ".lock"]] {
        let (file, before) = (orders(1), gateway.orders().len());
        let journal = file.beside("orders.csv.journal");
        left_in_doubt(&gateway, &journal, &[(Some("line-2"), TradingDay(1))]).await;
        let run = async || {
            let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
            (output.status.code(), said(&output).1)
        };
        let (code, told) = run().await;
        assert_eq!(code, Some(2), "{told}");
        assert!(
            told.contains(&format!("move {journal}, {journal}.lock and {journal}.file elsewhere")),
            "{told}"
        );
        for ending in moved {
            let moved = fs::rename(format!("{journal}{ending}"), file.beside(&format!("kept{ending}")));
            if moved.is_err() {
                // If only the journal was moved, the message names the lock.
                let (code, told) = run().await;
                assert_eq!(code, Some(2), "{told}");
                assert!(
                    told.contains(&format!("{journal}.lock"))
                        && told.contains("move its lock and notes to it"),
                    "{told}"
                );
            }
        }
        let (code, told) = run().await;
        assert_eq!((code, gateway.orders().len()), (Some(0), before + 1), "{told}");
    }
}

/// Under its other name it had no journal, and all was placed again.
#[cfg(unix)]
#[tokio::test]
async fn o07_a_file_with_two_names_has_one_journal() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(2);
    let other = file.beside("today.csv");
    fs::hard_link(file.path(), &other).unwrap();
    for path in [file.path(), &*other, file.path()] {
        let output = gateway.command(&["replay", path, "--yes"]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    }
    assert_eq!(gateway.orders().len(), 2);
    assert!(!fs::exists(file.beside("today.csv.journal")).unwrap());
    // An older version began one for each name.
    fs::copy(file.beside("orders.csv.journal"), file.beside("today.csv.journal")).unwrap();
    for path in [file.path(), &*other] {
        let output = gateway.command(&["replay", path, "--yes"]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output).1);
    }
    assert_eq!(gateway.orders().len(), 2);
}

/// Journal and lock were removed together, and all rows were placed again, although the note beside them showed that
/// there had been a journal.
#[tokio::test]
async fn o07_a_note_without_its_journal_sends_nothing() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    for elsewhere in [false, true] {
        let (file, before) = (orders(2), gateway.orders().len());
        let journal = file.beside(if elsewhere { "other.j" } else { "orders.csv.journal" });
        let run = async || {
            let named = ["--journal", &*journal];
            let args =
                [&["replay", file.path(), "--yes"][..], if elsewhere { &named[..] } else { &[] }].concat();
            let output = gateway.command(&args).output().await.unwrap();
            (output.status.code(), said(&output).1)
        };
        assert_eq!(run().await.0, Some(0));
        let note = if elsewhere { file.beside("orders.csv.journals") } else { format!("{journal}.file") };
        for gone in ["", ".lock"].into_iter().chain(elsewhere.then_some(".file")) {
            fs::remove_file(format!("{journal}{gone}")).unwrap();
        }
        let (code, told) = run().await;
        assert_eq!((code, gateway.orders().len()), (Some(2), before + 2), "{told}");
        assert!(told.contains(&format!("{note} shows that there was one: nothing was sent")), "{told}");
        // A person may decide to send all rows again.
        fs::remove_file(&note).unwrap();
        let (code, told) = run().await;
        assert_eq!((code, gateway.orders().len()), (Some(0), before + 4), "{told}");
    }
}

/// A journal that was cut was accepted if its lock was gone, too.
#[cfg(unix)]
#[tokio::test]
async fn o07_a_journal_without_its_lock_sends_nothing_until_a_person_says_so() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(2);
    let journal = file.beside("orders.csv.journal");
    let run = async || {
        let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
        (output.status.code(), said(&output).1)
    };
    assert_eq!(run().await.0, Some(0));
    fs::remove_file(format!("{journal}.lock")).unwrap();
    let (code, told) = run().await;
    assert_eq!((code, gateway.orders().len()), (Some(2), 2), "{told}");
    assert!(told.contains(&format!("{journal}.lock is gone")), "{told}");
    // Regression: a sidecar went on with it.
    let store = file.beside("store");
    let args = ["proxy", "--port", "0", "--journal", &journal, "--store", &store];
    let output = gateway.command(&args).output().await.unwrap();
    let told_by_proxy = said(&output).1;
    assert_eq!(output.status.code(), Some(2), "{told_by_proxy}");
    assert!(told_by_proxy.contains(&format!("{journal}.lock is gone")), "{told_by_proxy}");
    let advised = ["-m", "600", "/dev/null", &*format!("{journal}.lock")];
    assert!(told.contains(&format!("install {}", advised.join(" "))), "{told}");
    assert!(std::process::Command::new("install").args(advised).status().unwrap().success());
    let (code, told) = run().await;
    assert_eq!((code, gateway.orders().len()), (Some(0), 2), "{told}");
}
