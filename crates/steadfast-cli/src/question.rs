//! Questions to a person at the terminal.

use std::io::{self, Write};

use crate::exit::Failed;

/// Asks at the terminal; anything but a yes is a no.
pub(crate) async fn confirmed(question: &'static str) -> Result<bool, Failed> {
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
