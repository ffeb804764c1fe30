use std::{borrow::Cow, fmt, time::Duration};

/// What a [`Stack`](crate::Stack) or [`Client`](crate::Client) will do: its layers, outermost first, each with the
/// settings that take effect.
///
/// It is for a start-up log or a support case, so no secret is in it: not the API key, no token, no header's value and
/// no credential of a proxy.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use steadfast::{Stack, auth::{ApiKey, TokenSource}, deadline::DeadlineLayer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = TokenSource::fixed(ApiKey::new("key")?, "token")?;
/// let stack = Stack::new("https://api.example/v2".parse()?, tokens)
///     .deadline(DeadlineLayer::new(Duration::from_secs(20)));
///
/// let description = stack.describe();
/// assert_eq!(description.setting("Deadline", "answered within"), Some("20s"));
/// println!("{description}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The address below which all requests lie.
    pub base: String,
    /// The layers, outermost first; the last is the transport.
    pub layers: Vec<LayerDescription>,
}

/// One layer of a [`Description`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerDescription {
    /// The layer's name, as on the [crate's page](crate#order).
    pub name: &'static str,
    /// What it is set to.
    pub settings: Vec<Setting>,
}

/// One setting that takes effect, whether it was given or is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// What is set.
    pub name: Cow<'static, str>,
    /// What it is set to.
    pub value: String,
}

impl Description {
    /// The value of one setting of one layer.
    #[must_use]
    pub fn setting(&self, layer: &str, name: &str) -> Option<&str> {
        let layer = self.layers.iter().find(|described| described.name == layer)?;
        layer.settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }
}

impl LayerDescription {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, settings: Vec::new() }
    }

    pub(crate) fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.settings.push(Setting { name: name.into(), value: value.to_string() });
        self
    }
}

/// A limit in words.
pub(crate) fn spelled(limit: Option<Duration>) -> String {
    limit.map_or_else(|| "no limit".to_owned(), |limit| format!("{limit:?}"))
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "requests below {}", self.base)?;
        for layer in &self.layers {
            write!(f, "\n{}", layer.name)?;
            for Setting { name, value } in &layer.settings {
                write!(f, "\n  {name}: {value}")?;
            }
        }
        Ok(())
    }
}
