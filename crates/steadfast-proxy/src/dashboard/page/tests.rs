use super::*;
use crate::dashboard::state::State;

const FIXTURE: &str = include_str!("fixture.json");

/// The page as it stands without a server: with a state in it, and its policy.
fn with_state(state: &str) -> String {
    let policy = DASHBOARD.policy.replace("frame-ancestors 'none'; ", "");
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<title>");
    let state = state.replace('<', "\\u003c");
    let state = format!("<script type=\"application/json\" id=\"fixture\">{state}</script>\n<dialog");
    DASHBOARD.html.replacen("<title>", &policy, 1).replacen("<dialog", &state, 1)
}

#[test]
fn the_fixture_is_a_state_and_shows_every_part_of_the_page() {
    let state: State = serde_json::from_str(FIXTURE).unwrap();
    let again: serde_json::Value = serde_json::to_value(&state).unwrap();
    assert_eq!(again, serde_json::from_str::<serde_json::Value>(FIXTURE).unwrap(), "no field is missing");
    for stage in ["waiting", "unheard", "in_doubt", "unresolved"] {
        assert!(state.doubts.iter().any(|order| order.stage == stage), "{stage}");
    }
    for level in ["note", "warning", "alarm"] {
        assert!(state.log.iter().any(|line| line.level == level), "{level}");
    }
    assert!(state.zones.iter().any(|zone| zone.paused.contains(&1) && zone.learned.is_some()));
    assert!(!state.resolved.is_empty() && !state.calls.refused.is_empty() && !state.absent.is_empty());

    // For a look at it: target/dashboard/*.html.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/dashboard");
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(format!("{folder}/doubt.html"), with_state(FIXTURE)).unwrap();
    let mut calm = state;
    calm.doubts.clear();
    (calm.head.in_doubt, calm.head.unresolved) = (0, 0);
    std::fs::write(format!("{folder}/calm.html"), with_state(&serde_json::to_string(&calm).unwrap()))
        .unwrap();
}

#[test]
fn a_policy_allows_the_one_style_and_the_one_script_and_nothing_from_elsewhere() {
    // The hash of nothing, as every description of SHA-256 has it.
    assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    for page in [&*DASHBOARD, &*DOOR] {
        let (html, policy) = (&page.html, &page.policy);
        for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
            assert_eq!(html.matches(&format!("<{tag}")).count(), 1, "{tag}");
            let (_, rest) = html.split_once(&format!("<{tag}>")).unwrap();
            let (text, _) = rest.split_once(&format!("</{tag}>")).unwrap();
            assert!(text.len() > 100);
            assert!(policy.contains(&format!("{directive} '{}';", hash(text))), "{policy}");
        }
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        for directive in ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(directive), "{directive}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for foreign in [
            "https://",
            "//cdn",
            "@import",
            "url(",
            " style=",
            " onclick=",
            "innerHTML",
            "{style}",
            "{script}",
        ] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        let addresses: Vec<_> = html.match_indices("http://").map(|(at, _)| &html[at..at + 17]).collect();
        assert!(addresses.iter().all(|address| *address == "http://www.w3.org"), "{addresses:?}");
    }
}

#[test]
fn an_answer_keeps_its_own_policy_and_has_the_strictest_without_one() {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("mine"));
    protect(&mut headers);
    assert_eq!(headers["content-security-policy"], "mine");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    let mut other = HeaderMap::new();
    protect(&mut other);
    assert_eq!(other["content-security-policy"], "default-src 'none'; frame-ancestors 'none'");
}
