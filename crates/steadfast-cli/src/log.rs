//! The log on standard error.

use std::sync::OnceLock;

use tracing_subscriber::EnvFilter;

use crate::{config, exit::Failed, readable};

/// The filter of a log that says nothing.
pub(crate) const OFF: &str = "off";

type Change = Box<dyn Fn(EnvFilter) -> Result<(), Failed> + Send + Sync>;

/// Changes the filter of the log.
static CHANGE: OnceLock<Change> = OnceLock::new();

/// Logs to standard error if the environment or the config file asks for it. With a config file, it may ask later.
pub(crate) fn begin() -> Result<(), Failed> {
    let given = std::env::var("STEADFAST_LOG").ok();
    let of_file = config::file().map(|file| file.entry("", "log").map_or(OFF, |entry| entry.text()));
    let Some(filter) = given.as_deref().or(of_file) else { return Ok(()) };
    let filter =
        EnvFilter::try_new(filter).map_err(|error| Failed::usage(format_args!("STEADFAST_LOG: {error}")))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| readable::Log);
    if of_file.is_none() {
        log.init();
        return Ok(());
    }
    let log = log.with_filter_reloading();
    let handle = log.reload_handle();
    log.init();
    // It is set once.
    let _ = CHANGE.set(Box::new(move |filter| handle.reload(filter).map_err(Failed::error)));
    Ok(())
}

/// Changes what is logged, unless the environment says it.
pub(crate) fn change(filter: &str) -> Result<(), Failed> {
    if std::env::var_os("STEADFAST_LOG").is_some() {
        return Ok(());
    }
    let filter = EnvFilter::try_new(filter).map_err(|error| Failed::usage(format_args!("log: {error}")))?;
    CHANGE.get().map_or(Ok(()), |change| change(filter))
}
