//! The tables as the page of evidence shows them, and whether it does.

use anyhow::Result;

use super::campaign::Campaign;
use super::row::Row;
use super::{Judged, Judgement, table};
use crate::metadata::Workspace;
use crate::tidy::Repository;

/// The page that shows the tables.
const PAGE: &str = "docs/evidence.md";
const MEASURED: &str = "| | what | target | measured | seeds | holds |\n|---|---|---|---|---|---|\n";
const CAMPAIGN: &str =
    "| | long runs aim at | and came to | at `crates` | on | with |\n|---|---|---|---|---|---|\n";
/// What the state of `crates` stands behind.
const STATE: &str = "State of `crates` (`git rev-parse --short=12 HEAD:crates`): `";
/// How each row is measured again, whichever it is.
const RULE: &str = "`cargo xtask evidence --only F1` measures row F1 again, and so on.";

/// The rows that were judged, and below them what long runs of them came to.
pub(super) fn of(judged: &[Judged], planted: Option<&str>, workspace: &Workspace) -> Result<String> {
    let crates = judged.first().map_or("unknown", |judged| judged.crates.as_str());
    let bug = planted.map(|bug| format!(" with {bug} planted")).unwrap_or_default();
    let rows: String = judged.iter().map(row).collect();
    let campaign = campaign(&Campaign::read(&workspace.root)?, judged.iter().map(|judged| judged.row));
    Ok(format!("{STATE}{crates}`{bug}. {RULE}\n\n{MEASURED}{rows}{campaign}"))
}

fn row(Judged { row, judgement, seeds, .. }: &Judged) -> String {
    let Judgement { value, pass, na } = judgement;
    let holds = match pass {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "not yet",
    };
    let (seeds, value) = (seeds.as_deref().unwrap_or_default(), na.as_ref().unwrap_or(value));
    format!("{} {value} | {seeds} | {holds} |\n", start(row))
}

/// What a row begins with, whatever was measured.
fn start(Row { id, what, target, .. }: &Row) -> String {
    format!("| {id} | {what} | {target} |")
}

/// What long runs came to: of each row the first that `campaign.toml` has.
fn campaign<'a>(campaign: &Campaign, rows: impl Iterator<Item = &'a Row>) -> String {
    let lines = rows.filter_map(|Row { id, aim, .. }| {
        let line = match campaign.of(id).next() {
            Some(run) => {
                format!("{} | `{}` | {} | `{}` |", run.figure, run.crates, run.date, run.command)
            }
            None if aim.is_empty() => return None,
            None => "not run | | | |".to_owned(),
        };
        Some(format!("| {id} | {aim} | {line}\n"))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{CAMPAIGN}{lines}") }
}

/// Where the page's tables are not those that the command prints: the figures of a run may be any, all else may not.
pub(crate) fn faults_of_page(files: &Repository) -> Vec<String> {
    let text = |path| files.file(path).map(|file| file.text.as_str());
    let (Some(page), Some(runs)) = (text(PAGE), text(Campaign::PATH)) else {
        return vec![format!("{PAGE} and {} have to be there", Campaign::PATH)];
    };
    let mut faults = Vec::new();
    for what in [STATE, RULE, MEASURED] {
        if !page.contains(what) {
            faults.push(format!("{PAGE} lacks {what:?}"));
        }
    }
    let shown = page.split_once(MEASURED).map_or("", |(_, rows)| rows);
    let shown: Vec<&str> = shown.lines().take_while(|line| line.starts_with('|')).collect();
    for (number, row) in table::TABLE.iter().enumerate() {
        let holds = |line: &str| line.ends_with("| yes |") && line.matches(" | ").count() == 5;
        if !shown.get(number).is_some_and(|line| line.starts_with(&start(row)) && holds(line)) {
            faults.push(format!("{PAGE}: no row that holds begins with {:?} in its place", start(row)));
        }
    }
    if shown.len() > table::TABLE.len() {
        faults.push(format!("{PAGE} has rows that nothing measures"));
    }
    match Campaign::parse(runs).map(|runs| campaign(&runs, table::TABLE.iter())) {
        Ok(campaign) => {
            let missing =
                campaign.trim_start().lines().filter(|line| !page.lines().any(|shown| shown == *line));
            faults.extend(missing.map(|line| format!("{PAGE} lacks {line:?}")));
        }
        Err(error) => faults.push(format!("{error:#}")),
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: &str = "
        [[F8]]
        figure = '3,000,000 images'
        command = 'cargo test'
        crates = 'c15a1be7b1a5'
        date = '2026-11-22'
        [[F8]]
        figure = 'an older one'
        command = 'cargo test'
        crates = 'c15a1be7b1a4'
        date = '2026-11-21'
    ";

    fn page() -> String {
        let rows: String =
            table::TABLE.iter().map(|row| format!("{} 7 | 0..9 | yes |\n", start(row))).collect();
        let campaign = campaign(&Campaign::parse(RUNS).unwrap(), table::TABLE.iter());
        format!("{STATE}b3ad89b0a425`. {RULE}\n\n{MEASURED}{rows}{campaign}")
    }

    fn faults(page: &str) -> Vec<String> {
        faults_of_page(&Repository::of(&[(PAGE, page), (Campaign::PATH, RUNS)]))
    }

    #[test]
    fn what_the_command_prints_is_without_fault() {
        assert_eq!(faults(&page()), [""; 0]);
        let page = page();
        assert!(page.contains("| 3,000,000 images | `c15a1be7b1a5` | 2026-11-22 | `cargo test` |"), "{page}");
        assert!(!page.contains("an older one"));
        assert!(
            page.contains("| F7 | every script of three | not run | | | |"),
            "an aim without a run is told"
        );
    }

    #[test]
    fn another_column_name_order_or_verdict_is_found() {
        let page = page();
        for (from, to) in [
            ("| seeds |", "|"),
            ("| simulated trading time |", "| trading time, simulated |"),
            ("| 0 violations |", "| few violations |"),
            ("| F2 |", "| F3 |"),
            ("| yes |", "| **no** |"),
            ("3,000,000 images", "30,000,000 images"),
            ("--only F1`", "--only F2`"),
        ] {
            let changed = page.replacen(from, to, 1);
            assert_ne!(changed, page, "{from}");
            assert!(!faults(&changed).is_empty(), "{from}");
        }
        let more = page.replace("\n\n| | long", "\n| F99 | all | all | all | | yes |\n\n| | long");
        assert_eq!(faults(&more), [format!("{PAGE} has rows that nothing measures")]);
        assert_eq!(faults_of_page(&Repository::of(&[])).len(), 1);
    }
}
