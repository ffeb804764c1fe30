use crate::workspace::{Dependency, Member, Workspace};

const SPEC: &str = "steadfast-spec";
const CALL: &str = "steadfast-call";
const SVG: &str = "steadfast-svg";
const LAYERS: &[&str] = &[CALL, "steadfast-limit", "steadfast-auth", "steadfast-retry", "steadfast-dedup"];
const FACADE: &[&str] =
    &[CALL, "steadfast-limit", "steadfast-auth", "steadfast-retry", "steadfast-dedup", "steadfast-redis"];

/// Which members of the workspace a crate may be built on. Every crate may use the spec, and no other than
/// those named. Dev-dependencies are free.
const TABLE: &[Row] = &[
    // The service as data: usable without any runtime.
    Row { name: SPEC, on: &[], never: &["tower", "tokio", "hyper"] },
    // The facts that layers tell each other about a call.
    Row { name: CALL, on: &[], never: &["tower", "tokio", "hyper"] },
    // Layers do not know each other, and none knows what carries the requests.
    Row { name: "steadfast-limit", on: &[CALL], never: &["hyper"] },
    Row { name: "steadfast-auth", on: &[CALL], never: &["hyper"] },
    Row { name: "steadfast-retry", on: &[CALL], never: &["hyper"] },
    Row { name: "steadfast-dedup", on: &[CALL], never: &["hyper"] },
    Row { name: "steadfast", on: FACADE, never: &[] },
    // The judge shares only the spec with those it judges.
    Row { name: "steadfast-sandbox", on: &[], never: &[] },
    Row {
        name: "steadfast-cli",
        on: &["steadfast", CALL, "steadfast-sandbox", "steadfast-proxy", SVG],
        never: &[],
    },
    // Its checkers read the history that one layer keeps of itself.
    Row {
        name: "steadfast-verify",
        on: &["steadfast", CALL, "steadfast-dedup", "steadfast-sandbox", SVG],
        never: &[],
    },
    // It uses the libraries, wrongly, in tests alone.
    Row { name: "steadfast-misuse", on: &[], never: &[] },
    // Text alone.
    Row { name: SVG, on: &[], never: &["tower", "tokio", "hyper"] },
    Row { name: "steadfast-redis", on: LAYERS, never: &[] },
    Row { name: "steadfast-proxy", on: &["steadfast"], never: &[] },
    // A fresh clone compiles this first.
    Row { name: "xtask", on: &[], never: &["steadfast"] },
];

struct Row {
    name: &'static str,
    on: &'static [&'static str],
    /// No dependency of which the name is one of these, or begins with one of these and a dash.
    never: &'static [&'static str],
}

impl Row {
    fn allows(&self, dependency: &Dependency) -> bool {
        let name = dependency.name.as_str();
        let is_banned = self.never.iter().any(|banned| {
            name.strip_prefix(banned).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        let is_known = dependency.path.is_none() || name == SPEC || self.on.contains(&name);
        is_known && !is_banned
    }
}

/// Finds dependencies that the architecture rules out.
pub(super) fn check(workspace: &Workspace) -> Vec<String> {
    // Examples, benches and fuzz targets use what they show, measure or attack.
    let free = ["examples", "benches", "fuzz"].map(|folder| workspace.root.join(folder));
    let is_free = |member: &&Member| free.iter().any(|folder| member.manifest_path.starts_with(folder));
    let mut findings = Vec::new();
    for member in workspace.members.iter().filter(|member| !is_free(member)) {
        let Some(row) = TABLE.iter().find(|row| row.name == member.name) else {
            findings.push(format!("{} is not in the table of crates", member.name));
            continue;
        };
        let shipped = member.dependencies.iter().filter(|edge| edge.kind.as_deref() != Some("dev"));
        let wrong = shipped.filter(|edge| !row.allows(edge));
        findings.extend(wrong.map(|edge| format!("{} must not depend on {}", member.name, edge.name)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, folder: &str, on: &str, kind: Option<&str>) -> Vec<String> {
        let path = on.starts_with("steadfast").then(|| "/repo/crates".into());
        let edge = Dependency { name: on.to_owned(), kind: kind.map(str::to_owned), path };
        let member = Member::of(name, folder, vec![edge]);
        check(&Workspace { root: "/repo".into(), target: "/repo/target".into(), members: vec![member] })
    }

    #[test]
    fn dependencies_beside_the_table_are_found() {
        for (name, on) in [
            ("steadfast-dedup", "steadfast-limit"),
            ("steadfast-retry", "hyper-util"),
            ("steadfast-spec", "tokio"),
            ("steadfast-spec", "tower-layer"),
            ("steadfast-spec", "steadfast-call"),
            ("steadfast-call", "tokio"),
            ("steadfast-sandbox", "steadfast-call"),
            ("xtask", "steadfast-spec"),
        ] {
            assert_eq!(found(name, "crates", on, None), [format!("{name} must not depend on {on}")]);
            assert_eq!(found(name, "crates", on, Some("dev")), [""; 0], "tests are free");
        }
        assert_eq!(found("steadfast-auth", "crates", "steadfast-spec", None), [""; 0]);
        assert_eq!(found("steadfast-auth", "crates", "steadfast-call", None), [""; 0]);
        assert_eq!(found("steadfast-limit", "crates", "tower", None), [""; 0]);
        assert_eq!(
            found("steadfast-core", "crates", "tower", None),
            ["steadfast-core is not in the table of crates"]
        );
        assert_eq!(found("peers", "benches/peers", "tower", None), [""; 0]);
    }
}
