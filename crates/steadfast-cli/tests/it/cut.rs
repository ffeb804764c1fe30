//! O7: every command reports a journal that was cut, restored from a copy or linked.

use std::fs;

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
};

/// The last orders are missing in a journal that was restored from a copy. `orders unresolved` reported that all is
/// well.
#[tokio::test]
async fn o07_an_older_copy_of_a_journal_is_no_clean_list() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(1);
    let journal = file.beside("orders.csv.journal");
    let run = async |args: &[&str]| {
        let output = gateway.command(args).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    assert_eq!(run(&["replay", file.path(), "--yes"]).await.0, Some(0));
    let older = fs::read(&journal).unwrap();
    file.append("EQT_INFY_EQ_NSE,2,buy,market,intraday,day,,\n");
    assert_eq!(run(&["replay", file.path(), "--yes"]).await.0, Some(0));
    let whole = fs::read(&journal).unwrap();
    assert_eq!(run(&["orders", "unresolved", "--journal", &journal]).await.0, Some(0));

    fs::write(&journal, older).unwrap();
    for json in [&[][..], &["--json"]] {
        let (code, (stdout, stderr)) =
            run(&[&["orders", "unresolved", "--journal", &journal], json].concat()).await;
        assert_eq!(code, Some(2), "{stderr}");
        assert!(
            stderr.contains("was cut or is an older copy") && stderr.contains("nothing was sent"),
            "{stderr}"
        );
        assert_eq!(stdout, if json.is_empty() { "" } else { "[]\n" }, "what can be read is told");
    }
    let (code, (_, stderr)) = run(&["replay", file.path(), "--yes"]).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("nothing was sent"), "{stderr}");

    fs::write(&journal, whole).unwrap();
    #[cfg(unix)]
    {
        let link = file.beside("link");
        fs::hard_link(&journal, &link).unwrap();
        let (code, (_, stderr)) = run(&["orders", "unresolved", "--journal", &journal]).await;
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("has another name"), "{stderr}");
        fs::remove_file(link).unwrap();
    }
    fs::remove_file(&journal).unwrap();
    let (code, (_, stderr)) = run(&["orders", "unresolved", "--journal", &journal]).await;
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("is not the one that was written last"), "{stderr}");
    assert_eq!(gateway.orders().len(), 2);
}
