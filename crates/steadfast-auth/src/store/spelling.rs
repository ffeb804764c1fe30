//! One spelling for all names of the same account. A service locks the account, however its address is written.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

/// Returns a base address with scheme and host in lower case, without the scheme's default port, a dot after the host,
/// and redundant slashes; `localhost` stands for both loopback addresses.
pub(super) fn of_base(base: &str) -> String {
    let base = base.trim();
    let Ok(uri) = base.parse::<Uri>() else { return base.to_owned() };
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else { return base.to_owned() };
    let scheme = scheme.to_ascii_lowercase();
    let own_port = if scheme == "https" { 443 } else { 80 };
    let port = uri.port_u16().filter(|port| *port != own_port);
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    let path = uri.path().split('/').filter(|segment| !segment.is_empty());
    let path: String = path.flat_map(|segment| ["/", segment]).collect();
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    format!("{scheme}://{}{port}{path}{query}", of_host(host))
}

/// Returns the host and port of a base address, in one spelling: a service locks a user under all of its paths.
pub(super) fn of_service(base: &str) -> String {
    let base = base.trim();
    let Ok(uri) = base.parse::<Uri>() else { return base.to_owned() };
    let Some(host) = uri.host() else { return base.to_owned() };
    let own_port = if uri.scheme_str().is_some_and(|it| it.eq_ignore_ascii_case("https")) { 443 } else { 80 };
    format!("{}:{}", of_host(host), uri.port_u16().unwrap_or(own_port))
}

fn of_host(host: &str) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    match bare.parse() {
        Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) | Ok(IpAddr::V6(Ipv6Addr::LOCALHOST)) => "localhost".to_owned(),
        Ok(IpAddr::V4(address)) => address.to_string(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Err(_) => bare.to_lowercase(),
    }
}

/// Returns a user without surrounding space, in lower case.
pub(super) fn of_user(user: &str) -> String {
    user.trim().to_lowercase()
}

/// Returns a user without any blanks.
pub(super) fn without_blanks(user: &str) -> String {
    user.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t21_an_address_has_one_spelling() {
        for (same, others) in [
            (
                "https://api.example/v2",
                &[
                    "HTTPS://API.Example/v2",
                    "https://api.example:443/v2",
                    "https://api.example./v2",
                    "https://api.example/v2/",
                    "https://api.example//v2",
                    " https://api.example.:443//v2// ",
                ][..],
            ),
            (
                "http://localhost:8080/a/v2",
                &["http://LOCALHOST.:8080/a/v2", "http://127.0.0.1:8080//a/v2", "http://[::1]:8080/a/v2/"],
            ),
            ("http://localhost/v2", &["http://localhost:80/v2", "http://[0:0:0:0:0:0:0:1]/v2"]),
            ("http://[2001:db8::1]/v2", &["http://[2001:DB8:0::1]:80/v2"]),
            ("no address", &[" no address"]),
            ("", &[" "]),
        ] {
            assert_eq!(of_base(same), same, "what is written so already stays");
            others.iter().for_each(|other| assert_eq!(of_base(other), same, "{other}"));
        }
    }

    #[test]
    fn t21_a_service_is_its_host_and_port_whatever_the_path_and_scheme() {
        for same in
            ["http://A.:8080/v2", "HTTP://a:8080/x/v2", "https://a:8080/./v2", "http://u:p@a:8080/v2?q"]
        {
            assert_eq!(of_service(same), "a:8080", "{same}");
        }
        assert_eq!(of_service("https://a/v2"), "a:443");
        for other in ["http://a/v2", "http://b:8080/v2", "http://127.0.0.2:8080/v2"] {
            assert_ne!(of_service(other), "a:8080", "{other}");
        }
        assert_eq!(of_service("http://[::1]/v2"), of_service("http://127.0.0.1:80/x"));
    }

    #[test]
    fn other_addresses_stay_others() {
        let all = [
            "https://api.example/v2",
            "http://api.example/v2",
            "https://api.example:80/v2",
            "https://api.example:444/v2",
            "https://api.example/V2",
            "https://api.example/v2/x",
            "https://api.example/v2?x",
            "https://api.example.org/v2",
            "https://127.0.0.2/v2",
            "https://127.0.0.1/v2",
        ];
        let spelled: std::collections::BTreeSet<_> = all.map(of_base).into();
        assert_eq!(spelled.len(), all.len(), "{spelled:?}");
    }
}
