//! Files of orders, each in a temporary folder.

use std::process::Output;

use tempfile::TempDir;

pub(crate) const HEADER: &str = "symId,qty,side,type,product,validity,limitPrice,trigPrice\n";

pub(crate) struct Orders {
    pub(crate) folder: TempDir,
    path: String,
}

/// Returns a file of orders that differ in their quantity.
pub(crate) fn orders(rows: usize) -> Orders {
    let rows: String =
        (1..=rows).map(|qty| format!("EQT_INFY_EQ_NSE,{qty},buy,market,intraday,day,,\n")).collect();
    file(&format!("{HEADER}{rows}"))
}

/// Returns a file with this text.
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

    /// Returns the path of another file in the folder.
    pub(crate) fn beside(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn append(&self, text: &str) {
        let whole = std::fs::read_to_string(&self.path).unwrap() + text;
        std::fs::write(&self.path, whole).unwrap();
    }
}

/// Removes the files of an earlier run of a test, including the locks, which show that there was a
/// journal.
#[cfg(unix)]
pub(crate) fn forget(journal: &str) {
    for ending in ["", ".lock", ".limits", ".limits.lock"] {
        drop(std::fs::remove_file(format!("{journal}{ending}")));
    }
}

/// Returns the texts on standard output and standard error.
pub(crate) fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}
