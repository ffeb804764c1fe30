use steadfast_svg::{Anchor, Svg};

/// Colours that are distinct for colour-blind readers and on grey paper. Cells have one hue, so that only lightness
/// matters.
const STYLE: &str = "
text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2933}
.title{font-size:19px;font-weight:600}.head{font-size:15px;font-weight:600}.small{font-size:12px}
.faint{fill:#5f6b7a}.light{fill:#ffffff}.haloed{stroke:#ffffff;stroke-width:5px;paint-order:stroke}
.paper{fill:#ffffff}.promised{fill:none;stroke:#0072b2;stroke-width:2px}
.none{fill:#f3f6f9}.tenth{fill:#d6e4f0}.one{fill:#a9c9e2}.ten{fill:#6fa8d0}.hundred{fill:#2f7fb5}.more{fill:#0b4f80}
.half{fill:#0072b2}.most{fill:#d55e00}
.grid{stroke:#d9dee5}.range{stroke:#5f6b7a;stroke-width:2px}.longest{stroke:#1f2933;stroke-width:2.5px}
.target{stroke:#5f6b7a;stroke-width:1.5px;stroke-dasharray:5 4}
";

/// Begins a picture on white paper, with its title.
pub(super) fn begun((width, height): (f64, f64), title: &str) -> Svg {
    let mut svg = Svg::new(width, height, title).style(STYLE);
    svg.rect("paper", (0.0, 0.0), (width, height));
    svg.text("title", (24.0, 34.0), Anchor::Start, title);
    svg
}
