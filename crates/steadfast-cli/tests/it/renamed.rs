//! O7: a file of orders that goes by another name is not placed a second time.

use std::fs;

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
};

/// A journal was looked for beside the name: under another name of the same file there was none, and all was placed again.
#[tokio::test]
async fn o07_a_file_that_was_renamed_is_not_placed_again() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let file = orders(2);
    let first = said(&gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap()).1;
    let journal = file.beside("orders.csv.journal");
    assert!(first.contains(&format!("new journal {journal}: every order is sent")), "{first}");
    assert_eq!(gateway.orders().len(), 2);

    let other = file.beside("monday.csv");
    fs::rename(file.path(), &other).unwrap();
    let output = gateway.command(&["replay", &other, "--yes"]).output().await.unwrap();
    let told = said(&output).1;
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains(&format!("go on with it by --journal {journal}")), "{told}");
    let output = gateway.command(&["replay", &other, "--yes", "--journal", &journal]).output().await.unwrap();
    let told = said(&output).1;
    assert!(told.contains(&format!("\njournal {journal}: what it holds is not sent again")), "{told}");
    assert_eq!(gateway.orders().len(), 2, "{told}");

    // Two files beside each other are two, whatever is in them.
    fs::copy(&other, file.path()).unwrap();
    gateway.command(&["replay", &other, "--yes"]).output().await.unwrap();
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
