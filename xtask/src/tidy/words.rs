use super::source::words;
use super::{Finding, Repository};

/// Tests that never run: nobody notices when they start to fail.
pub(super) fn ignored_tests(files: &Repository) -> Vec<Finding> {
    lines(files, "an ignored test", |line| {
        line.contains("#[") && words(line).any(|(_, word)| word == "ignore")
    })
}

/// Macros that stand for code to be written.
pub(super) fn unwritten(files: &Repository) -> Vec<Finding> {
    lines(files, "code that is still to be written", |line| {
        ["todo", "unimplemented"].iter().any(|name| calls_macro(line, name))
    })
}

/// Sleeps in real time: tests wait for events or on a clock that they can pause.
pub(super) fn real_sleep(files: &Repository) -> Vec<Finding> {
    lines(files, "a sleep in real time", |line| line.contains("thread::sleep")) // what the check looks for
}

/// Own code without the compiler's protection.
pub(super) fn unsafe_code(files: &Repository) -> Vec<Finding> {
    lines(files, "unsafe code", |line| words(line).any(|(_, word)| word == "unsafe"))
}

/// Stamps that are looked for among the extensions: they are not there, and to a layer that misses one a request that
/// was sent is like one that never left.
pub(super) fn stamps_among_extensions(files: &Repository) -> Vec<Finding> {
    const STAMPS: [&str; 8] =
        ["Deadline", "Outcome", "Route", "SendBy", "SendStamp", "Sends", "Ticket", "TokenGeneration"];
    lines(files, "a stamp read as an extension", |line| {
        ["get::<", "get_mut::<", "remove::<", "beside::<"]
            .into_iter()
            .flat_map(|ask| line.split(ask).skip(1))
            .any(|asked| {
                let name =
                    asked.split('>').next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
                STAMPS.contains(&name)
            })
    })
}

fn calls_macro(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let starts_a_word = !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        starts_a_word && line[at + name.len()..].starts_with('!')
    })
}

fn lines(files: &Repository, what: &str, breaks_rule: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in files.rust() {
        for (number, line) in (1..).zip(source.code().lines()) {
            if breaks_rule(line) {
                findings.push(Finding::at(&file.path, number, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    fn repository(text: &str) -> Repository {
        Repository::of(&[("crates/one/src/lib.rs", text)])
    }

    #[test]
    fn an_ignored_test_is_found_in_every_form() {
        // fixtures: each form is found
        for attribute in ["#[ignore]", "#[ignore = \"slow\"]", "#[cfg_attr(windows, ignore)]"] {
            let found = ignored_tests(&repository(&format!("#[test]\n{attribute}\nfn a() {{}}")));
            assert_eq!(shown(found), ["crates/one/src/lib.rs:2: an ignored test"], "{attribute}");
        }
        assert!(ignored_tests(&repository("fn ignore() {} // #[ignore]")).is_empty()); // fixture: passes
    }

    #[test]
    fn code_to_be_written_is_found() {
        assert_eq!(unwritten(&repository("fn a() { todo!() }\nfn b() { unimplemented!(\"b\") }")).len(), 2); // fixture: is found
        assert!(unwritten(&repository("fn mytodo!() {} fn todo() {} // todo!()")).is_empty()); // fixture: passes
    }

    #[test]
    fn a_real_sleep_is_found() {
        let found = real_sleep(&repository("fn a() {\n    std::thread::sleep(SECOND);\n}")); // fixture: is found
        assert_eq!(shown(found), ["crates/one/src/lib.rs:2: a sleep in real time"]);
        assert!(real_sleep(&repository("async fn a() { tokio::time::sleep(SECOND).await }")).is_empty());
    }

    #[test]
    fn a_stamp_read_as_an_extension_is_found() {
        for ask in [
            "get::<ext::Deadline>",
            "get_mut::<Outcome>",
            "remove::<steadfast_spec::ext::SendStamp>",
            "beside::<SendBy>",
        ] {
            let found = stamps_among_extensions(&repository(&format!("let a = b.{ask}();")));
            assert_eq!(shown(found), ["crates/one/src/lib.rs:1: a stamp read as an extension"], "{ask}");
        }
        let right = "let a = Outcome::of(b).or(c.get::<ext::DoNotRetry>()); // c.get::<Outcome>()";
        assert!(stamps_among_extensions(&repository(right)).is_empty());
    }

    #[test]
    fn unsafe_code_is_found() {
        assert_eq!(unsafe_code(&repository("fn a() { unsafe { b() } }")).len(), 1);
        assert!(
            unsafe_code(&repository("#![forbid(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";"))
                .is_empty()
        );
    }
}
