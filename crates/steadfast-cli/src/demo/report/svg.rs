use std::fmt::{self, Write};

/// An SVG picture. Colours are classes, so that the page's style can have a light and a dark theme.
#[derive(Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

/// How a text is aligned to its point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

impl Svg {
    /// Creates an empty picture; `label` describes it for screen readers.
    pub(crate) fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: escape(label), body: String::new() }
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// Draws a bar that stands on `bottom`, with a tooltip.
    pub(crate) fn bar(
        &mut self,
        class: &str,
        (x, bottom): (f64, f64),
        (width, height): (f64, f64),
        hint: &str,
    ) {
        let y = bottom - height;
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="1"><title>{}</title></rect>"#,
            escape(hint)
        ));
    }

    pub(crate) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, hint: &str) {
        self.push(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"><title>{}</title></circle>"#,
            escape(hint)
        ));
    }

    pub(crate) fn diamond(&mut self, class: &str, (x, y): (f64, f64), radius: f64, hint: &str) {
        self.push(format_args!(
            r#"<path class="{class}" d="M{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}Z"><title>{}</title></path>"#,
            x - radius,
            y - radius,
            x + radius,
            y + radius,
            escape(hint)
        ));
    }

    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{}">{}</text>"#,
            anchor.as_str(),
            escape(text)
        ));
    }

    fn push(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, label, body } = self;
        writeln!(f, r#"<svg viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{label}">"#)?;
        f.write_str(body)?;
        f.write_str("</svg>\n")
    }
}

/// Escapes a text for use between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_break_out_of_their_element() {
        let mut svg = Svg::new(10.0, 10.0, r#"a"b"#);
        svg.text("t", (1.0, 2.0), Anchor::Middle, "<script>&");
        svg.dot("d", (1.0, 2.0), 3.0, "</title>");
        let drawn = svg.to_string();
        assert!(drawn.contains("aria-label=\"a&quot;b\""), "{drawn}");
        assert!(drawn.contains("&lt;script&gt;&amp;</text>"), "{drawn}");
        assert!(!drawn.contains("</title></title>"), "{drawn}");
    }
}
