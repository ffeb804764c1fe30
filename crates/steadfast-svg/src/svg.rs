use std::fmt;

use crate::{Element, escape};

/// A picture. Points are in pixels from the upper left corner.
#[derive(Debug)]
#[must_use]
pub struct Svg {
    width: f64,
    height: f64,
    label: String,
    style: Option<String>,
    elements: Vec<Element>,
}

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

impl Svg {
    /// Creates an empty picture for a page that has a style sheet; `label` describes it for screen readers.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: escape(label), style: None, elements: Vec::new() }
    }

    /// Makes it a file of its own, with this style sheet.
    pub fn style(self, css: &str) -> Self {
        Self { style: Some(css.to_owned()), ..self }
    }

    /// Draws a line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> &mut Element {
        let ends = format_args!(r#"x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}""#);
        self.add(Element::new("line", class, ends))
    }

    /// Draws a rectangle, given its upper left corner.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> &mut Element {
        let sides = format_args!(r#"x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}""#);
        self.add(Element::new("rect", class, sides))
    }

    /// Draws a dot.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) -> &mut Element {
        self.add(Element::new("circle", class, format_args!(r#"cx="{x:.1}" cy="{y:.1}" r="{radius:.1}""#)))
    }

    /// Draws a square that stands on its corner.
    pub fn diamond(&mut self, class: &str, (x, y): (f64, f64), radius: f64) -> &mut Element {
        let (left, right, top, bottom) = (x - radius, x + radius, y - radius, y + radius);
        let corners =
            format_args!(r#"d="M{left:.1} {y:.1}L{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {bottom:.1}Z""#);
        self.add(Element::new("path", class, corners))
    }

    /// Writes a text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let place = format_args!(r#"x="{x:.1}" y="{y:.1}" text-anchor="{anchor}""#);
        self.add(Element::new("text", class, place).containing(text));
    }

    fn add(&mut self, element: Element) -> &mut Element {
        self.elements.push_mut(element)
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, label, style, elements } = self;
        f.write_str("<svg ")?;
        if style.is_some() {
            write!(f, r#"xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" "#)?;
        }
        writeln!(f, r#"viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{label}">"#)?;
        if let Some(css) = style {
            writeln!(f, "<style>{css}</style>")?;
        }
        for element in elements {
            writeln!(f, "{element}")?;
        }
        f.write_str("</svg>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_break_out_of_their_element() {
        let mut svg = Svg::new(10.0, 10.0, r#"a"b"#);
        svg.text(r#"t"><x"#, (1.0, 2.0), Anchor::Middle, "<script>&");
        svg.dot("d", (1.0, 2.0), 3.0).hint("</title>");
        let drawn = svg.to_string();
        assert!(drawn.contains("aria-label=\"a&quot;b\""), "{drawn}");
        assert!(drawn.contains("&lt;script&gt;&amp;</text>"), "{drawn}");
        assert!(!drawn.contains("</title></title>") && !drawn.contains("<x"), "{drawn}");
    }

    #[test]
    fn a_picture_with_a_style_sheet_is_a_file_of_its_own() {
        let page = Svg::new(10.4, 20.0, "label").to_string();
        assert_eq!(page, "<svg viewBox=\"0 0 10 20\" role=\"img\" aria-label=\"label\">\n</svg>\n");
        let file = Svg::new(10.0, 20.0, "label").style(".a{}").to_string();
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"20\" "));
        assert!(file.contains("<style>.a{}</style>"), "{file}");
    }
}
