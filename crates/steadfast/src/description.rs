use std::{borrow::Cow, fmt, time::Duration};

/// The layers of a [`Stack`](crate::Stack) or [`Client`](crate::Client), outermost first, each with the settings that
/// take effect.
///
/// It is for a start-up log or a support case, so it holds no secret: no API key, token, header value or proxy
/// credential.
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
    /// The base address of all requests.
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
    /// The layer's settings.
    pub settings: Vec<Setting>,
}

/// One setting that takes effect, given or default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// The setting's name.
    pub name: Cow<'static, str>,
    /// The setting's value.
    pub value: String,
}

impl Description {
    /// Returns the value of one setting of one layer.
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

/// Spells a limit out.
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
