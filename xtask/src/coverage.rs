//! Which lines the plain tests run: `cargo xtask coverage [CRATE …]`, one line a crate.
//!
//! It is told and never judged: a line that ran may still be wrong, and mutants say more. It needs the compiler's own
//! `llvm-tools`, because the files that an instrumented program writes are of one version of LLVM.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::args::Misunderstood;
use crate::cargo_tool::CargoTool;
use crate::console;
use crate::metadata::Workspace;
use crate::process;
use crate::tally::Tally;

const TOOL: CargoTool = CargoTool { name: "cargo-llvm-cov", version: "0.9.1" };

/// Lines of one crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    all: u64,
    ran: u64,
}

/// Runs the plain tests of these crates, or of all that users build, and prints what they cover.
pub(crate) fn run(workspace: &Workspace, words: &[String]) -> Result<Tally> {
    let shipped = || workspace.members.iter().filter(|member| member.folder.starts_with("crates"));
    let packages: Vec<&str> = match words {
        [] => shipped().map(|member| member.name.as_str()).collect(),
        words => words.iter().map(String::as_str).collect(),
    };
    for package in &packages {
        if workspace.member(package).is_none() {
            bail!(Misunderstood(anyhow!("`coverage {package}`: no such crate")));
        }
    }
    // Before the tool is built, which takes a while.
    ensure!(
        has_llvm_tools(&compilers_folder(&workspace.root)?),
        "the compiler's llvm-tools are missing; type: rustup component add llvm-tools"
    );
    let program = TOOL.ready(workspace)?;
    let folder = workspace.target.join("coverage");
    fs::create_dir_all(&folder)?;
    let report = folder.join("report.json");
    let mut command = Command::new(program);
    command.current_dir(&workspace.root).args(["llvm-cov", "test", "--tests", "--no-fail-fast"]);
    command.args(["--json", "--summary-only", "--output-path"]).arg(&report);
    for package in &packages {
        command.args(["--package", package]);
    }
    command.env("CARGO_TARGET_DIR", &folder).env("CARGO_TERM_COLOR", "never");
    let ending = process::stream(&mut command, None, |_, line| console::say(line))?;
    if let Some(why) = ending.failure() {
        bail!("{why}");
    }
    let report = fs::read_to_string(&report).with_context(|| report.display().to_string())?;
    let crates = by_crate(&serde_json::from_str(&report)?, &workspace.root)?;
    console::say(table(&crates));
    ensure!(!crates.is_empty(), "nothing was measured");
    Ok(Tally::SUCCESS)
}

fn compilers_folder(root: &Path) -> Result<PathBuf> {
    let output = Command::new("rustc").current_dir(root).args(["--print", "sysroot"]).output()?;
    ensure!(output.status.success(), "rustc does not say where it is");
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}

/// They are a component of their own, which not every machine has.
fn has_llvm_tools(compilers_folder: &Path) -> bool {
    let program = format!("bin/llvm-profdata{}", env::consts::EXE_SUFFIX);
    let Ok(hosts) = fs::read_dir(compilers_folder.join("lib/rustlib")) else { return false };
    hosts.flatten().any(|host| host.path().join(&program).is_file())
}

/// Sums the lines of each crate's own sources; what only tests consist of does not count.
fn by_crate(report: &Value, root: &Path) -> Result<BTreeMap<String, Lines>> {
    let files =
        report.pointer("/data/0/files").and_then(Value::as_array).context("no files in the report")?;
    let mut crates = BTreeMap::<String, Lines>::new();
    for file in files {
        let name = file["filename"].as_str().context("a file without a name")?;
        let Ok(path) = Path::new(name).strip_prefix(root.join("crates")) else { continue };
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let (Some(package), Some(folder)) = (parts.next(), parts.next()) else { continue };
        if folder != "src" {
            continue;
        }
        let number = |field: &str| file.pointer(&format!("/summary/lines/{field}")).and_then(Value::as_u64);
        let lines = crates.entry(package.into_owned()).or_default();
        lines.all += number("count").context("a file without its count of lines")?;
        lines.ran += number("covered").context("a file without its count of lines that ran")?;
    }
    Ok(crates)
}

fn table(crates: &BTreeMap<String, Lines>) -> String {
    let mut text = String::from("\n| crate | lines | ran |\n|---|---|---|\n");
    for (name, Lines { all, ran }) in crates {
        let share = 100.0 * *ran as f64 / (*all).max(1) as f64;
        text += &format!("| {name} | {all} | {share:.1} % |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_without_its_llvm_tools_is_noticed() {
        let folder = env::temp_dir().join(format!("steadfast-coverage-{}", std::process::id()));
        let programs = folder.join("lib/rustlib/some-host/bin");
        fs::create_dir_all(&programs).unwrap();
        assert!(!has_llvm_tools(&folder));
        fs::write(programs.join(format!("llvm-profdata{}", env::consts::EXE_SUFFIX)), "").unwrap();
        assert!(has_llvm_tools(&folder));
        fs::remove_dir_all(&folder).unwrap();
        assert!(!has_llvm_tools(&folder));
    }

    #[test]
    fn lines_of_a_crates_own_sources_are_summed() {
        let file = |name: &str, count: u64, covered: u64| serde_json::json!({ "filename": name, "summary": { "lines": { "count": count, "covered": covered } } });
        let report = serde_json::json!({ "data": [{ "files": [
            file("/repo/crates/steadfast-limit/src/log.rs", 100, 90),
            file("/repo/crates/steadfast-limit/src/pump/one.rs", 100, 80),
            file("/repo/crates/steadfast-limit/tests/it/main.rs", 10, 0),
            file("/elsewhere/src/lib.rs", 10, 0),
        ] }] });
        let crates = by_crate(&report, Path::new("/repo")).unwrap();
        assert_eq!(crates, BTreeMap::from([("steadfast-limit".to_owned(), Lines { all: 200, ran: 170 })]));
        assert!(table(&crates).contains("| steadfast-limit | 200 | 85.0 % |"));
    }
}
