use anyhow::Result;

use crate::console;
use crate::metadata::Workspace;
use crate::report::{Report, Verdict};
use crate::stopwatch::Stopwatch;
use crate::summary::{Row, Summary};
use crate::tally::Tally;

/// One step of a run.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    pub(crate) run: fn(&Workspace) -> Result<Report>,
}

/// What a stage has to do with compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Needs no build.
    Free,
    /// Is the build.
    Builds,
    /// Would only repeat the compiler's errors if the build failed.
    NeedsBuild,
}

/// Runs every stage in order; a failure stops nothing but what needs a build that failed.
pub(crate) fn run_all(stages: &[Stage], workspace: &Workspace) -> Summary {
    let mut builds = true;
    let mut rows = Vec::with_capacity(stages.len());
    for stage in stages {
        let row = row(stage.name, || match stage.role {
            Role::NeedsBuild if !builds => Ok(Report::skipped("the build failed")),
            _ => (stage.run)(workspace),
        });
        builds &= stage.role != Role::Builds || row.report.verdict == Verdict::Passed;
        rows.push(row);
    }
    Summary { rows }
}

/// Runs one stage, with its name before and its verdict after what it prints.
pub(crate) fn row(name: &'static str, run: impl FnOnce() -> Result<Report>) -> Row {
    console::say(format_args!("\n=== {name} ==="));
    let clock = Stopwatch::start();
    let report = run().unwrap_or_else(|error| Report::failed(format!("{error:#}"), Tally::default()));
    match &report.verdict {
        Verdict::Passed => {}
        Verdict::Failed(why) => {
            console::say(format_args!("{name} failed: {}", why.lines().next().unwrap_or_default()));
        }
        Verdict::Skipped(why) => console::say(format_args!("skipped: {why}")),
    }
    Row { name, took: clock.elapsed(), report }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace { root: "/".into(), target: "/target".into(), members: Vec::new() }
    }

    fn passes(_: &Workspace) -> Result<Report> {
        Ok(Report::passed(Tally { passed: 3, failed: 0 }))
    }

    fn breaks(_: &Workspace) -> Result<Report> {
        anyhow::bail!("it broke")
    }

    fn verdicts(stages: &[Stage]) -> Vec<Verdict> {
        run_all(stages, &workspace()).rows.into_iter().map(|row| row.report.verdict).collect()
    }

    #[test]
    fn a_failed_stage_does_not_stop_the_next() {
        let stages = [
            Stage { name: "first", role: Role::Free, run: breaks },
            Stage { name: "second", role: Role::NeedsBuild, run: passes },
        ];
        assert_eq!(verdicts(&stages), [Verdict::Failed("it broke".to_owned()), Verdict::Passed]);
        assert_eq!(run_all(&stages, &workspace()).tally(), Tally { passed: 3, failed: 1 });
    }

    #[test]
    fn a_failed_build_skips_what_needs_it_and_nothing_else() {
        let stages = [
            Stage { name: "build", role: Role::Builds, run: breaks },
            Stage { name: "tests", role: Role::NeedsBuild, run: passes },
            Stage { name: "format", role: Role::Free, run: passes },
        ];
        let skipped = Verdict::Skipped("the build failed".to_owned());
        assert_eq!(verdicts(&stages), [Verdict::Failed("it broke".to_owned()), skipped, Verdict::Passed]);
    }
}
