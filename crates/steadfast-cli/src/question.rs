//! Questions to a person at the terminal.

use std::{
    fmt,
    io::{self, Write},
};

use crate::{exit::Failed, readable::Readable};

/// Asks at the terminal; anything but a yes is a no.
pub(crate) async fn confirmed(question: impl fmt::Display) -> Result<bool, Failed> {
    let question = Readable(question).to_string();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stderr = io::stderr();
        // A question that cannot be shown must not count as confirmed.
        write!(stderr, "{question}")?;
        stderr.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok::<_, io::Error>(answer)
    });
    let answer = answer.await.map_err(Failed::error)?.map_err(Failed::error)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
