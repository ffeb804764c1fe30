use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

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
        fs::write(&path, svg(&format!("{subject}: {unit}"), &compared))?;
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

const LINE: usize = 20;
const LABELS: usize = 250;
const BARS: f64 = 420.0;

fn svg(title: &str, cases: &[(&str, Vec<&Figure>)]) -> String {
    let lines: usize = cases.iter().map(|(_, all)| all.len() + 2).sum::<usize>() + 1;
    let mut svg = String::new();
    // Readable on light and on dark pages: the text's colour is that of the middle.
    let style = "text{font:13px sans-serif;fill:#808080}.head{font-weight:bold}.ours{fill:#2a7ae2}.peer{fill:#b0b0b0}";
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="780" height="{}" role="img"><title>{}</title><style>{style}</style>"#,
        lines * LINE,
        escaped(title)
    );
    let mut y = LINE;
    let _ = writeln!(svg, r#"<text class="head" x="0" y="{}">{}</text>"#, y - 5, escaped(title));
    for (case, all) in cases {
        let longest = all.iter().map(|figure| figure.value).fold(f64::MIN_POSITIVE, f64::max);
        y += 2 * LINE;
        let _ = writeln!(svg, r#"<text class="head" x="0" y="{}">{}</text>"#, y - 5, escaped(case));
        for figure in all {
            let long = BARS * figure.value / longest;
            let class = if figure.who == OURS { "ours" } else { "peer" };
            let _ = writeln!(
                svg,
                r#"<text x="10" y="{0}">{1}</text><rect class="{class}" x="{LABELS}" y="{2}" width="{long:.1}" height="14"/><text x="{3:.1}" y="{0}">{4}</text>"#,
                y + 15,
                escaped(&figure.who),
                y + 3,
                LABELS as f64 + long + 6.0,
                amount(figure.value),
            );
            y += LINE;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
        let drawn = svg("limiter: ns", &cases);
        assert!(drawn.contains("a &amp; b") && !drawn.contains("alone"), "{drawn}");
        assert!(drawn.contains(r#"width="105.0""#) && drawn.contains(r#"width="420.0""#), "{drawn}");
    }
}
