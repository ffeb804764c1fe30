//! The dashboard in a real browser, as an operator sees it.
//!
//! Pictures are in `target/dashboard/`. `STEADFAST_WRITE_DOCS=1` renews the one in the README.

mod chromium;
mod relay;

use std::{env, fs, time::Duration};

use serde_json::{Value, json};
use steadfast_sandbox::Sandbox;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::{sleep, timeout},
};

use self::{
    chromium::Page,
    relay::{Passes, Relay},
};
use crate::world::{FORM, TOKEN, World};

/// A state with everything that the page can show.
const EXAMPLE: &str = include_str!("../../src/dashboard/page/fixture.json");

const IS_CALM: &str = "document.body.dataset.doubt === 'calm'";
const IS_LOUD: &str = "document.body.dataset.doubt === 'alarm'";

/// Opens the dashboard, and waits for the first event of its stream.
async fn open(page: &mut Page, world: &World) {
    open_by(page, &world.proxy.dashboard_link(world.admin).unwrap()).await;
}

async fn open_by(page: &mut Page, link: &str) {
    page.open(link).await;
    page.until("state.head && document.querySelector('.strip svg')").await;
    // The browser tells of the door, which is answered to a visitor without a cookie.
    let told = page.complaints().await;
    assert!(matches!(&told[..], [door] if door.contains("status of 401")), "{told:?}");
    assert_eq!(page.eval("location.hash").await, "", "the link stays in no history");
}

fn keep(name: &str, picture: &[u8]) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/dashboard");
    fs::create_dir_all(folder).unwrap();
    fs::write(format!("{folder}/{name}.png"), picture).unwrap();
}

#[tokio::test]
async fn an_order_in_doubt_is_the_loudest_thing_until_it_is_found() {
    let Some(mut page) = Page::start(&[]).await else { return };
    // The answer is lost, and so are those of the list from the second on, until the gateway is healed.
    let lost = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\n[[fault]]\nname = 'list.504'\nnth = 2\ntimes = 100";
    let world = World::new(Sandbox::builder().script(lost).unwrap()).await;
    open(&mut page, &world).await;
    page.until(IS_CALM).await;
    assert_eq!(page.eval("document.title").await, "steadfast");

    // A program may choose such a name. The page shows it as text.
    let name = "<img/src=x/onerror=document.title='owned'>";
    let order = world.order(&[&format!("Idempotency-Key: {name}")]);
    let told = async { world.ask(&order).await };
    let seen = async {
        page.until(IS_LOUD).await;
        page.until("document.querySelector('#doubts article .name')").await;
        let row = page.eval("document.querySelector('#doubts article').innerText").await;
        let row = row.as_str().unwrap();
        assert!(row.contains("EQT_INFY_EQ_NSE") && row.contains(name) && row.contains("open"), "{row}");
        assert_eq!(page.eval("document.title").await, "(1) in doubt · steadfast");
        assert_eq!(page.eval("document.getElementById('doubt-count').textContent").await, "1");
        let loudest = "[...document.querySelectorAll('body *')].sort((a, b) =>
            parseFloat(getComputedStyle(b).fontSize) - parseFloat(getComputedStyle(a).fontSize))[0].id";
        assert_eq!(page.eval(loudest).await, "doubt-count");
        keep("live-doubt", &page.picture(false).await);
        world.sandbox.heal();
        page.until(IS_CALM).await;
    };
    let (told, ()) = tokio::join!(told, seen);
    assert_eq!(told.status, 200, "{told:?}");
    let id = &world.sandbox.state().orders[0].order_id;
    page.until("document.querySelector('#doubts .nothing').textContent === 'No order is in doubt.'").await;
    page.until(&format!("document.querySelector('#resolved summary').innerText.includes('{id}')")).await;
    assert_eq!(page.complaints().await, [""; 0]);
    page.end().await;
}

#[tokio::test]
async fn the_switch_halts_and_resumes_after_a_question() {
    let Some(mut page) = Page::start(&[]).await else { return };
    let world = World::new(Sandbox::builder()).await;
    open(&mut page, &world).await;
    page.until("document.getElementById('trading').textContent === 'Trading'").await;
    let asks = "document.getElementById('confirm').open";
    for (word, halts) in [("Halt", true), ("Resume", false)] {
        page.click("#switch").await;
        page.until(asks).await;
        assert_eq!(page.eval("document.getElementById('confirm-yes').textContent").await, word);
        page.click("#confirm-no").await;
        page.until(&format!("!{asks}")).await;
        assert_eq!(world.client.is_halted(), !halts, "it was not confirmed");
        page.click("#switch").await;
        page.until(asks).await;
        page.click("#confirm-yes").await;
        let shown = if halts { "Halted" } else { "Trading" };
        page.until(&format!("!{asks} && document.getElementById('trading').textContent === '{shown}'")).await;
        assert_eq!(world.client.is_halted(), halts);
        let order = world.ask(&world.order(&[&format!("Idempotency-Key: {word}")])).await;
        assert_eq!(order.status, if halts { 503 } else { 200 }, "{order:?}");
        keep(&format!("live-{}", shown.to_lowercase()), &page.picture(false).await);
    }
    assert_eq!(world.placed(), 1);
    assert_eq!(page.complaints().await, [""; 0]);
    page.end().await;
}

#[tokio::test]
async fn a_stream_that_is_cut_or_silent_is_told_as_stale_and_goes_on() {
    let world = World::new(Sandbox::builder()).await;
    let relay = Relay::to(world.admin).await;
    // The page's address is the sidecar's, and its bytes go through the relay.
    let port = world.admin.port();
    let rule = format!("--host-resolver-rules=MAP localhost:{port} {}", relay.address);
    let Some(mut page) = Page::start(&[rule]).await else { return };
    let link = world.proxy.dashboard_link(world.admin).unwrap().replace("127.0.0.1", "localhost");
    open_by(&mut page, &link).await;
    let is_stale = "document.body.classList.contains('stale')";
    let words = "document.getElementById('stale').innerText";
    page.until(IS_CALM).await;
    assert_eq!(page.eval(is_stale).await, false);
    // A reading that may be old must not look reassuring.
    let comfort = "['#trading', '.doubt'].map((it) => getComputedStyle(document.querySelector(it)).color)";
    let green = page.eval(comfort).await;
    for (passes, said) in [(Passes::NoConnection, "The stream ended"), (Passes::Nothing, "has been silent")] {
        relay.let_pass(passes);
        page.until(&format!("{is_stale} && {words}.includes('{said}')")).await;
        let shown = page.eval(words).await;
        assert!(shown.as_str().unwrap().starts_with("Stale since "), "{shown}");
        let grey = page.eval(comfort).await;
        assert!(green[0] != grey[0] && green[1] != grey[1], "{green}, {grey}");
        keep("live-stale", &page.picture(false).await);
        // Something happens meanwhile, and it is shown afterwards.
        world.client.halt();
        assert_eq!(page.eval("document.getElementById('trading').textContent").await, "Trading");
        relay.let_pass(Passes::Everything);
        page.until(&format!("!{is_stale} && document.getElementById('trading').textContent === 'Halted'"))
            .await;
        assert_eq!(page.eval("document.getElementById('stale').hidden").await, true);
        world.client.resume();
        page.until("document.getElementById('trading').textContent === 'Trading'").await;
    }
    // The browser itself tells which connections failed.
    let others: Vec<String> = page.complaints().await;
    let others: Vec<&String> = others.iter().filter(|it| !it.starts_with("network: ")).collect();
    assert!(others.is_empty(), "{others:?}");
    page.end().await;
}

/// Somewhere that the page must not reach.
struct Stranger(TcpListener);

impl Stranger {
    async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn origin(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    /// Returns what it is sent. A browser may open a connection before it decides to send nothing.
    async fn heard(&self) -> String {
        let mut text = Vec::new();
        while let Ok(accepted) = timeout(Duration::from_millis(300), self.0.accept()).await {
            let mut caller = accepted.unwrap().0;
            drop(timeout(Duration::from_millis(300), caller.read_buf(&mut text)).await);
        }
        String::from_utf8(text).unwrap()
    }
}

#[tokio::test]
async fn nothing_that_is_put_into_the_page_runs_or_leaves_it() {
    let Some(mut page) = Page::start(&[]).await else { return };
    let world = World::new(Sandbox::builder()).await;
    let stranger = Stranger::new().await;
    let there = stranger.origin();
    open(&mut page, &world).await;
    for put in [
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.append(Object.assign(document.createElement('script'), { text: 'window.ran = 1' }))",
        "(() => { document.body.setAttribute('onclick', 'window.ran = 2'); document.body.click() })()",
        "eval('window.ran = 3')",
        "import('data:text/javascript,window.ran = 4')",
        &format!("fetch('{there}')"),
        &format!("fetch('{there}', {{ method: 'POST', mode: 'no-cors', body: 'x' }})"),
        &format!(
            "new Promise((_, failed) => Object.assign(new Image(), {{ src: '{there}', onerror: failed }}))"
        ),
        &format!("new WebSocket('{}')", there.replace("http", "ws")),
    ] {
        page.eval(&format!("(async () => {{ try {{ await ({put}) }} catch {{ }} }})()")).await;
        let told = page.complaints().await;
        assert!(told.iter().any(|it| it.contains("ContentSecurityPolicyIssue")), "{put}: {told:?}");
    }
    // Markup, as if the sidecar had sent it.
    let markup = format!(
        "<script>window.ran = 5</script><img src='{there}' onerror='window.ran = 6'>\
         <style>body {{ background: url({there}) }}</style><iframe src='{there}'></iframe>"
    );
    let frame = page.call("Page.getFrameTree", json!({})).await["frameTree"]["frame"]["id"].take();
    page.call("Page.setDocumentContent", json!({"frameId": frame, "html": markup})).await;
    page.until("document.querySelector('iframe')").await;
    sleep(Duration::from_millis(200)).await;
    let told = page.complaints().await.concat();
    for directive in ["script-src-elem", "script-src-attr", "style-src-elem", "img-src", "frame-src"] {
        assert!(told.contains(directive), "{directive}: {told}");
    }
    assert_eq!(page.eval("window.ran ?? null").await, Value::Null);
    assert_eq!(stranger.heard().await, "");
    page.end().await;
}

/// A page of an attacker, at a name that he has pointed at this machine.
#[tokio::test]
async fn a_foreign_page_places_and_reads_nothing() {
    let world = World::new(Sandbox::builder()).await;
    let rule = "--host-resolver-rules=MAP evil.example 127.0.0.1".to_owned();
    let Some(mut page) = Page::start(&[rule]).await else { return };
    // The browser knows the dashboard's cookie.
    open(&mut page, &world).await;
    let refused = |state: &Value| -> u64 {
        let rows = state["calls"]["refused"].as_array().unwrap();
        rows.iter().map(|row| row["count"].as_u64().unwrap()).sum()
    };
    let token = [format!("Authorization: Bearer {TOKEN}")];
    let state = async || -> Value {
        let answer = crate::admin::call(&world, "GET /-/state", &token).await;
        serde_json::from_str(&answer.body).unwrap()
    };
    let before = refused(&state().await);

    // Another origin on this machine, which is another site's in all but its port.
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let home = format!("http://{}/", other.local_addr().unwrap());
    tokio::spawn(serve_nothing(other));
    page.open(&home).await;
    let sends = format!(
        "method: 'POST', mode: 'no-cors', credentials: 'include', body: new URLSearchParams('{FORM}')"
    );
    for (authority, path) in [(world.address, "v2/api/oms/place-order"), (world.admin, "-/halt")] {
        page.eval(&format!("fetch('http://{authority}/{path}', {{ {sends} }}).then(() => 1, () => 0)")).await;
    }
    let read = format!("fetch('http://{}/-/state', {{ credentials: 'include' }})", world.admin);
    assert_eq!(page.eval(&format!("{read}.then((it) => it.text(), () => 'nothing')")).await, "nothing");
    let shown = format!(
        "new Promise((done) => {{ const frame = document.createElement('iframe'); frame.onload = () => done(1);
           frame.src = 'http://{}/'; document.body.append(frame) }})",
        world.admin
    );
    page.eval(&shown).await;

    // The rebound name is the page's own origin, so that its browser lets it read every answer.
    for authority in [world.address, world.admin] {
        page.open(&format!("http://evil.example:{}/", authority.port())).await;
        for asked in [
            format!("fetch('/v2/api/oms/place-order', {{ {sends} }})"),
            format!("fetch('/-/halt', {{ {sends} }})"),
            "fetch('/v2/api/oms/orders')".to_owned(),
            "fetch('/')".to_owned(),
            "fetch('/-/state')".to_owned(),
        ] {
            assert_eq!(page.eval(&format!("{asked}.then((it) => it.status)")).await, 403, "{asked}");
        }
    }
    let after = refused(&state().await);
    assert!(after >= before + 6, "the browser asked the programs' listener: {before}, {after}");
    assert_eq!((world.placed(), world.arrivals(), world.client.is_halted()), (0, 0, false));
    page.end().await;
}

/// Answers each request with an empty page.
async fn serve_nothing(listener: TcpListener) {
    loop {
        let (mut caller, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut bytes = [0; 4_096];
            drop(caller.read(&mut bytes).await);
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            drop(caller.write_all(answer.as_bytes()).await);
        });
    }
}

#[tokio::test]
async fn everything_fits_into_each_window_light_and_dark() {
    let Some(mut page) = Page::start(&[]).await else { return };
    let world = World::new(Sandbox::builder()).await;
    open(&mut page, &world).await;
    let mut calm: Value = serde_json::from_str(EXAMPLE).unwrap();
    (calm["doubts"], calm["head"]["in_doubt"], calm["head"]["unresolved"]) = (json!([]), 0.into(), 0.into());
    let mut halted = calm.clone();
    halted["head"]["trading"] = "halted".into();
    // The stream would take the example away, and its silence be told.
    page.eval("stream = stream.close()").await;
    for (name, state) in [("doubt", EXAMPLE), ("calm", &calm.to_string()), ("halted", &halted.to_string())] {
        page.eval(&format!("take({state})")).await;
        for (width, height) in [(420, 900), (1_024, 768), (1_600, 900)] {
            for scheme in ["light", "dark"] {
                page.look(width, height, scheme).await;
                let name = format!("{name}-{width}-{scheme}");
                keep(&name, &page.picture(true).await);
                let wide = page.eval("document.documentElement.scrollWidth").await;
                assert_eq!(wide, width, "{name}");
                // The elements that the window cuts off, without those that their own panel scrolls.
                let cut = "[...document.querySelectorAll('body *')].filter((it) => !it.closest('.scroll, svg, dialog'))
                    .filter((it) => { const box = it.getBoundingClientRect();
                        return box.width > 0 && (box.left < 0 || box.right > innerWidth + 0.5) })
                    .map((it) => `${it.tagName} ${it.className}`)";
                assert_eq!(page.eval(cut).await, json!([]), "{name}");
                let page_colour = page.eval("getComputedStyle(document.body).backgroundColor").await;
                let is_dark = page_colour.as_str().unwrap().starts_with("rgb(11,");
                assert_eq!(is_dark, scheme == "dark", "{name}: {page_colour}");
            }
        }
    }
    assert_eq!(page.complaints().await, [""; 0]);
    page.end().await;
}

/// The README's picture: renewed with `STEADFAST_WRITE_DOCS=1`, and not too large in any case.
#[tokio::test]
async fn the_readme_has_a_picture_of_the_page() {
    let Some(mut page) = Page::start(&[]).await else { return };
    let world = World::new(Sandbox::builder()).await;
    open(&mut page, &world).await;
    let mut example: Value = serde_json::from_str(EXAMPLE).unwrap();
    example["doubts"].as_array_mut().unwrap().drain(1..);
    example["calls"]["endpoints"].as_array_mut().unwrap().drain(4..);
    example["calls"]["refused"] = json!([]);
    (example["head"]["in_doubt"], example["head"]["unresolved"]) = (0.into(), 1.into());
    page.eval("stream = stream.close()").await;
    page.eval(&format!("take({example})")).await;
    page.look(1_080, 800, "light").await;
    let bottom = page.eval("document.getElementById('resolved').getBoundingClientRect().top").await;
    page.look(1_080, bottom.as_f64().unwrap() as u32, "light").await;
    let picture = page.picture(false).await;
    keep("readme", &picture);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dashboard.png");
    if env::var_os("STEADFAST_WRITE_DOCS").is_some() {
        fs::write(path, &picture).unwrap();
    }
    let kept = fs::read(path).unwrap();
    assert!(kept.starts_with(b"\x89PNG") && kept.len() <= 150_000, "{} bytes", kept.len());
    page.end().await;
}
