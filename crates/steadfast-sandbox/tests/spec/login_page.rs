//! The login form of the authorize endpoint, read and sent back as a browser would.

use crate::form::Form;

/// A login form's target, and its contents before the user types.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginPage {
    pub(crate) action: Option<String>,
    /// Names and preset values, with the hidden ones marked.
    inputs: Vec<Input>,
}

#[derive(Clone, Debug)]
struct Input {
    name: String,
    value: String,
    hidden: bool,
}

impl LoginPage {
    pub(crate) fn parse(html: &str) -> Self {
        let action = tags(html, "form").next().and_then(|tag| attribute(tag, "action"));
        let inputs = tags(html, "input").filter_map(|tag| {
            let hidden = attribute(tag, "type").as_deref() == Some("hidden");
            Some(Input {
                name: attribute(tag, "name")?,
                value: attribute(tag, "value").unwrap_or_default(),
                hidden,
            })
        });
        Self { action, inputs: inputs.collect() }
    }

    /// Returns the form as the user sends it: presets kept, and the visible fields filled in by
    /// name.
    #[track_caller]
    pub(crate) fn filled_in(&self, typed: &Form) -> Form {
        assert!(self.inputs.iter().any(|input| !input.hidden), "a page without a login form: {self:?}");
        self.inputs.iter().fold(Form::default(), |form, input| {
            let value = if input.hidden { &input.value } else { typed.get(&input.name) };
            form.with(&input.name, value)
        })
    }
}

/// Returns the contents of each `<name …>` in turn.
fn tags<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    html.split('<').skip(1).filter_map(move |rest| {
        let tag = rest.split('>').next()?;
        tag.strip_prefix(name).filter(|attributes| attributes.starts_with(char::is_whitespace))
    })
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = tag[start..].split('"').next()?;
    let unescaped = value
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    Some(unescaped)
}
