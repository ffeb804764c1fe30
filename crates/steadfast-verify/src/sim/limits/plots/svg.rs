use std::fmt::{self, Write as _};

/// A picture of shapes and texts, on a light background.
#[derive(Debug)]
pub(super) struct Svg {
    width: u32,
    height: u32,
    body: String,
}

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A colour in CSS notation.
pub(super) type Colour = &'static str;

/// Colours that are distinct for colour-blind readers and on grey paper.
pub(super) const INK: Colour = "#1f2933";
pub(super) const FAINT: Colour = "#5f6b7a";
pub(super) const GRID: Colour = "#d9dee5";
pub(super) const BLUE: Colour = "#0072b2";
pub(super) const ORANGE: Colour = "#d55e00";
pub(super) const PAPER: Colour = "#ffffff";

impl Svg {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{fill}"/>"#
        ));
    }

    /// A rectangle without a fill.
    pub(super) fn frame(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), stroke: Colour) {
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="none" stroke="{stroke}" stroke-width="2"/>"#
        ));
    }

    pub(super) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: Colour, width: f64) {
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}" stroke-width="{width}"/>"#
        ));
    }

    pub(super) fn dashes(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: Colour) {
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}" stroke-width="1.5" stroke-dasharray="5 4"/>"#
        ));
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: Colour) {
        self.add(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{fill}"/>"#));
    }

    /// Adds a square that stands on its corner.
    pub(super) fn diamond(&mut self, (x, y): (f64, f64), radius: f64, fill: Colour) {
        let (left, right, top, bottom) = (x - radius, x + radius, y - radius, y + radius);
        self.add(format_args!(
            r#"<polygon points="{left:.1},{y:.1} {x:.1},{top:.1} {right:.1},{y:.1} {x:.1},{bottom:.1}" fill="{fill}"/>"#
        ));
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), size: u32, anchor: Anchor, fill: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{}</text>"#,
            Escaped(text)
        ));
    }

    pub(super) fn bold(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" font-weight="600" fill="{INK}">{}</text>"#,
            Escaped(text)
        ));
    }

    /// Adds a text with a halo that covers what is behind it.
    pub(super) fn haloed(&mut self, (x, y): (f64, f64), size: u32, text: &str) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" fill="{INK}" stroke="{PAPER}" stroke-width="5" paint-order="stroke">{}</text>"#,
            Escaped(text)
        ));
    }

    fn add(&mut self, element: fmt::Arguments<'_>) {
        // Writing into a string does not fail.
        let _ = writeln!(self.body, "{element}");
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, body } = self;
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif">"#
        )?;
        writeln!(f, r#"<rect width="{width}" height="{height}" fill="{PAPER}"/>"#)?;
        writeln!(f, "{body}</svg>")
    }
}

/// A text with its markup characters escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_no_markup() {
        let mut svg = Svg::new(10, 10);
        svg.text((0.0, 0.0), 12, Anchor::Middle, INK, "a < b & c");
        assert!(svg.to_string().contains(">a &lt; b &amp; c</text>"));
    }
}
