use super::Finding;
use crate::metadata::{Kind, Member, Origin};

const SPEC: &str = "steadfast-spec";
const LAYERS: &[&str] = &["steadfast-limit", "steadfast-auth", "steadfast-retry", "steadfast-dedup"];

/// Which members of the workspace a crate may be built on. Everyone may use the spec; nobody else than those
/// named. Dev-dependencies are free.
const TABLE: &[Row] = &[
    // The service as data: usable without any runtime.
    Row { name: SPEC, on: &[], never: &["tower", "tokio", "hyper"] },
    // Layers do not know each other, and none knows what carries the requests.
    Row { name: "steadfast-limit", on: &[], never: &["hyper"] },
    Row { name: "steadfast-auth", on: &[], never: &["hyper"] },
    Row { name: "steadfast-retry", on: &[], never: &["hyper"] },
    Row { name: "steadfast-dedup", on: &[], never: &["hyper"] },
    Row { name: "steadfast", on: LAYERS, never: &[] },
    // The judge shares only the spec with those it judges.
    Row { name: "steadfast-sandbox", on: &[], never: &[] },
    Row { name: "steadfast-cli", on: &["steadfast", "steadfast-sandbox", "steadfast-proxy"], never: &[] },
    // Its checkers read the history that one layer keeps of itself.
    Row { name: "steadfast-verify", on: &["steadfast", "steadfast-dedup", "steadfast-sandbox"], never: &[] },
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
    fn allows(&self, name: &str, origin: Origin) -> bool {
        let banned = self.never.iter().any(|banned| {
            name.strip_prefix(banned).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        let known = origin == Origin::Elsewhere || name == SPEC || self.on.contains(&name);
        known && !banned
    }
}

/// Finds dependencies that the architecture rules out.
pub(super) fn check(members: &[Member]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members.iter().filter(|member| is_bound(member)) {
        let Some(row) = TABLE.iter().find(|row| row.name == member.name) else {
            findings.push(Finding::new(&member.name, "is not in the table of crates"));
            continue;
        };
        let shipped = member.dependencies.iter().filter(|dependency| dependency.kind == Kind::Shipped);
        for dependency in shipped.filter(|dependency| !row.allows(&dependency.name, dependency.origin)) {
            findings.push(Finding::new(&member.name, format_args!("must not depend on {}", dependency.name)));
        }
    }
    findings
}

/// Examples, benches and fuzz targets use what they show, measure or attack.
fn is_bound(member: &Member) -> bool {
    !["examples", "benches", "fuzz"].iter().any(|folder| member.folder.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;
    use crate::tidy::finding::shown;

    fn member(name: &str, dependencies: &[(&str, Kind, Origin)]) -> Member {
        Member {
            name: name.to_owned(),
            folder: format!("crates/{name}").into(),
            dependencies: dependencies
                .iter()
                .map(|&(name, kind, origin)| Dependency { name: name.to_owned(), kind, origin })
                .collect(),
            examples: Vec::new(),
            system_tools: Vec::new(),
        }
    }

    fn found(name: &str, dependency: &str, kind: Kind, origin: Origin) -> Vec<String> {
        shown(check(&[member(name, &[(dependency, kind, origin)])]))
    }

    #[test]
    fn a_layer_that_knows_another_layer_is_found() {
        let found = found("steadfast-dedup", "steadfast-limit", Kind::Shipped, Origin::Workspace);
        assert_eq!(found, ["steadfast-dedup: must not depend on steadfast-limit"]);
    }

    #[test]
    fn a_layer_that_knows_hyper_and_a_spec_that_knows_a_runtime_are_found() {
        for (name, dependency) in [
            ("steadfast-retry", "hyper-util"),
            ("steadfast-spec", "tokio"),
            ("steadfast-spec", "tower-layer"),
        ] {
            assert_eq!(found(name, dependency, Kind::Shipped, Origin::Elsewhere).len(), 1, "{name}");
        }
    }

    #[test]
    fn the_spec_and_dev_dependencies_are_free() {
        assert!(found("steadfast-auth", SPEC, Kind::Shipped, Origin::Workspace).is_empty());
        assert!(found("steadfast-auth", "steadfast-verify", Kind::Tests, Origin::Workspace).is_empty());
        assert!(found("steadfast-auth", "hyper", Kind::Tests, Origin::Elsewhere).is_empty());
        assert!(found("steadfast-limit", "tower", Kind::Shipped, Origin::Elsewhere).is_empty());
    }

    #[test]
    fn a_crate_outside_the_table_is_found_unless_it_is_an_example_or_a_bench() {
        let mut stray = member("steadfast-core", &[]);
        assert_eq!(
            shown(check(std::slice::from_ref(&stray))),
            ["steadfast-core: is not in the table of crates"]
        );
        stray.folder = "benches/peers".into();
        assert!(check(&[stray]).is_empty());
    }
}
