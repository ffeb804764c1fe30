use std::fmt;

/// One shape or text of a picture.
#[derive(Debug)]
pub struct Element {
    tag: &'static str,
    attributes: String,
    /// Escaped already.
    content: String,
}

impl Element {
    pub(crate) fn new(tag: &'static str, class: &str, attributes: fmt::Arguments<'_>) -> Self {
        Self { tag, attributes: format!(r#"class="{}" {attributes}"#, escape(class)), content: String::new() }
    }

    pub(crate) fn containing(self, text: &str) -> Self {
        Self { content: escape(text), ..self }
    }

    /// Shows a text while the pointer is over the shape.
    pub fn hint(&mut self, text: &str) {
        self.content = format!("<title>{}</title>", escape(text));
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, attributes, content } = self;
        match content.is_empty() {
            true => write!(f, "<{tag} {attributes}/>"),
            false => write!(f, "<{tag} {attributes}>{content}</{tag}>"),
        }
    }
}

/// Escapes a text for use between tags and in attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
