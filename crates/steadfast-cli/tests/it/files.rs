//! Files of orders in a folder of the test's own.

use std::process::Output;

use tempfile::TempDir;

pub(crate) const HEADER: &str = "symId,qty,side,type,product,validity,limitPrice,trigPrice\n";

pub(crate) struct Orders {
    pub(crate) folder: TempDir,
    path: String,
}

/// A file of orders that differ in their quantity.
pub(crate) fn orders(rows: usize) -> Orders {
    let rows: String =
        (1..=rows).map(|qty| format!("EQT_INFY_EQ_NSE,{qty},buy,market,intraday,day,,\n")).collect();
    file(&format!("{HEADER}{rows}"))
}

/// A file with this text.
pub(crate) fn file(text: &str) -> Orders {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.csv").to_str().unwrap().to_owned();
    std::fs::write(&path, text).unwrap();
    Orders { folder, path }
}

impl Orders {
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The path of another file in the folder.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn append(&self, text: &str) {
        let whole = std::fs::read_to_string(&self.path).unwrap() + text;
        std::fs::write(&self.path, whole).unwrap();
    }
}

/// Removes what an earlier run of a test wrote down, with the locks, which say that there was a journal.
#[cfg(unix)]
pub(crate) fn forget(journal: &str) {
    for ending in ["", ".lock", ".limits", ".limits.lock"] {
        drop(std::fs::remove_file(format!("{journal}{ending}")));
    }
}

/// What was printed, to standard output and to standard error.
pub(crate) fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}
