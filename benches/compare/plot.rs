use std::fs;
use std::path::Path;

use anyhow::Result;
use steadfast_svg::{Anchor, Svg};

use super::Figure;
use super::figure::OURS;
use super::ratio::amount;

/// One picture for each unit: every case that has a peer, with a bar for everyone, as long as its share of the longest.
pub(super) fn draw(folder: &Path, subject: &str, figures: &[Figure]) -> Result<()> {
    let folder = folder.join("plots");
    fs::create_dir_all(&folder)?;
    let mut units: Vec<&str> = Vec::new();
    for figure in figures {
        if !units.contains(&figure.unit.as_str()) {
            units.push(&figure.unit);
        }
    }
    for unit in units {
        let compared = compared(figures, unit);
        if compared.is_empty() {
            continue;
        }
        let name: String =
            unit.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
        let path = folder.join(format!("{subject}-{}.svg", name.trim_matches('-')));
        fs::write(&path, svg(&format!("{subject}: {unit}"), &compared).to_string())?;
        eprintln!("drew {}", path.display());
    }
    Ok(())
}

/// The cases of a unit in which there is someone beside us, with everyone in them.
fn compared<'a>(figures: &'a [Figure], unit: &str) -> Vec<(&'a str, Vec<&'a Figure>)> {
    let mut cases: Vec<(&str, Vec<&Figure>)> = Vec::new();
    for figure in figures.iter().filter(|figure| figure.unit == unit) {
        match cases.iter_mut().find(|(case, _)| *case == figure.case) {
            Some((_, all)) => all.push(figure),
            None => cases.push((&figure.case, vec![figure])),
        }
    }
    cases.retain(|(_, all)| all.len() > 1 && all.iter().any(|figure| figure.who == OURS));
    cases
}

const WIDTH: f64 = 780.0;
const LINE: f64 = 20.0;
const LABELS: f64 = 250.0;
const BARS: f64 = 420.0;

/// Readable on light and on dark pages: the text's colour is that of the middle.
const STYLE: &str =
    "text{font:13px sans-serif;fill:#808080}.head{font-weight:bold}.ours{fill:#2a7ae2}.peer{fill:#b0b0b0}";

fn svg(title: &str, cases: &[(&str, Vec<&Figure>)]) -> Svg {
    let lines = cases.iter().map(|(_, all)| all.len() + 2).sum::<usize>() + 1;
    let mut svg = Svg::new(WIDTH, lines as f64 * LINE, title).style(STYLE);
    let mut y = LINE;
    svg.text("head", (0.0, y - 5.0), Anchor::Start, title);
    for (case, all) in cases {
        let longest = all.iter().map(|figure| figure.value).fold(f64::MIN_POSITIVE, f64::max);
        y += 2.0 * LINE;
        svg.text("head", (0.0, y - 5.0), Anchor::Start, case);
        for figure in all {
            let long = BARS * figure.value / longest;
            let class = if figure.who == OURS { "ours" } else { "peer" };
            svg.text("who", (10.0, y + 15.0), Anchor::Start, &figure.who);
            svg.rect(class, (LABELS, y + 3.0), (long, 14.0));
            svg.text("figure", (LABELS + long + 6.0, y + 15.0), Anchor::Start, &amount(figure.value));
            y += LINE;
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(case: &str, who: &str, value: f64) -> Figure {
        Figure { case: case.into(), who: who.into(), value, unit: "ns".into() }
    }

    #[test]
    fn a_case_that_nobody_shares_is_left_out_and_bars_are_in_proportion() {
        let figures =
            [figure("a & b", OURS, 10.0), figure("a & b", "peer", 40.0), figure("alone", OURS, 1.0)];
        let cases = compared(&figures, "ns");
        assert_eq!(cases.len(), 1);
        let drawn = svg("limiter: ns", &cases).to_string();
        assert!(drawn.contains("a &amp; b") && !drawn.contains("alone"), "{drawn}");
        assert!(drawn.contains(r#"width="105.0""#) && drawn.contains(r#"width="420.0""#), "{drawn}");
    }
}
