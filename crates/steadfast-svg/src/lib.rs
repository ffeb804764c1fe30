//! Plots as SVG text: for the report of `steadfast demo`, the plots of the simulator, and those of the benches.
//!
//! Colours, widths and fonts are classes of a style sheet: that of the page around the picture, or one in the picture.
//!
//! # Example
//!
//! ```
//! use steadfast_svg::{Anchor, Svg};
//!
//! let mut svg = Svg::new(200.0, 40.0, "waits").style(".bar{fill:#0072b2}");
//! svg.rect("bar", (10.0, 10.0), (120.0, 14.0)).hint("120 ms");
//! svg.text("tick", (134.0, 22.0), Anchor::Start, "p99 < 120 ms");
//! assert!(svg.to_string().contains("p99 &lt; 120 ms"));
//! ```

mod element;
mod svg;

pub use self::{
    element::{Element, escape},
    svg::{Anchor, Svg},
};
