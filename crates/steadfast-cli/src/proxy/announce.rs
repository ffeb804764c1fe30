use std::{net::SocketAddr, path::PathBuf};

use serde_json::json;
use steadfast::BaseUrl;

use crate::{
    exit::print_note,
    stdout::{print_line, print_secret},
};

/// The facts that a user needs to know of a running proxy.
pub(super) struct Facts {
    /// The service, unless it is a sandbox of the proxy's own.
    pub(super) service: Option<BaseUrl>,
    pub(super) account: String,
    pub(super) base_url: String,
    /// The Unix socket for programs, unless they have a port.
    pub(super) socket: Option<PathBuf>,
    pub(super) operators: SocketAddr,
    /// The local token, unless it is in a file.
    pub(super) token: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    /// A link to the dashboard, if the local token is told as well.
    pub(super) dashboard: Option<String>,
    pub(super) sandbox_admin: Option<SocketAddr>,
}

impl Facts {
    /// Says whether orders are real.
    fn destination(&self) -> String {
        match &self.service {
            Some(base) => format!("{base} (account {})", self.account),
            None => "REHEARSAL: own sandbox, nothing real is placed".to_owned(),
        }
    }
}

/// Tells the person or log beside a program whether its orders are real; standard output is the program's.
pub(super) fn announce_to_program(facts: &Facts) {
    match &facts.service {
        Some(_) => print_note(format_args!("steadfast: orders go to {}", facts.destination())),
        None => print_note(facts.destination()),
    }
}

/// Prints the facts, and for a person lines that work as they stand.
pub(super) fn announce(facts: &Facts, json: bool) {
    let base_url = &facts.base_url;
    let admin_url = format!("http://{}", facts.operators);
    let sandbox = facts.sandbox_admin.map(|address| format!("http://{address}"));
    if json {
        let facts = json!({
            "schema_version": 1,
            "target": facts.service.as_ref().map_or_else(|| "sandbox".to_owned(), ToString::to_string),
            "account": facts.account,
            "base_url": base_url,
            "socket": facts.socket,
            "admin_url": admin_url,
            "local_token": facts.token,
            "token_file": facts.token_file,
            "dashboard_url": facts.dashboard,
            "sandbox_admin_url": sandbox,
        });
        // The fragment of the dashboard's link would be masked.
        print_secret(&facts.to_string());
        return;
    }
    print_line(format_args!("service     {}", facts.destination()));
    print_line(format_args!("base_url    {base_url}"));
    if let Some(socket) = &facts.socket {
        print_line(format_args!("socket      {}", socket.display()));
    }
    print_line(format_args!("admin_url   {admin_url}"));
    let token = match (&facts.token, &facts.token_file) {
        (Some(token), _) => {
            print_line(format_args!("local_token {token}"));
            token.clone()
        }
        (None, Some(path)) => {
            print_line(format_args!("token_file  {}", path.display()));
            format!("$(cat '{}')", path.display())
        }
        (None, None) => return,
    };
    if let Some(dashboard) = &facts.dashboard {
        print_secret(&format!("dashboard   {dashboard}"));
    }
    if let Some(sandbox) = &sandbox {
        print_line(format_args!("sandbox     {sandbox}"));
    }
    let curl = format!("curl -sS -H \"Authorization: Bearer {token}\"");
    let program = match &facts.socket {
        Some(socket) => format!("{curl} --unix-socket '{}'", socket.display()),
        None => curl.clone(),
    };
    print_line("");
    print_line(format_args!("{program} {base_url}/api/oms/orders"));
    // A line that places an order must not stand ready for a real account.
    if sandbox.is_some() {
        let order =
            "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=limit&limitPrice=100&product=delivery&validity=day";
        print_line(format_args!(
            "{program} -H 'Idempotency-Key: order-1' -d '{order}' {base_url}/api/oms/place-order"
        ));
    }
    if facts.dashboard.is_none() {
        print_line(format_args!("{curl} -X POST {admin_url}/-/link"));
    }
    print_line(format_args!("{curl} -X POST {admin_url}/-/halt"));
}
