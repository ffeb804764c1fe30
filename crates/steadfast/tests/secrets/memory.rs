//! Copies of a token in the memory of a process that has dropped its client.
//!
//! Nothing promises that there are none: the buffers of hyper and of the kernel cannot be wiped from here. So the
//! copies are counted and reported; the test requires only that their number does not grow with the client's work.
#![cfg(target_os = "linux")]

use std::{
    env,
    fs::File,
    io::{Read, Seek, SeekFrom},
    process::Stdio,
};

use steadfast::{Access, Client};
use steadfast_sandbox::Sandbox;
use tokio::{net::TcpListener, process::Command};

/// The variable with the gateway, the key, the masked token, and the number of lists to read.
const CHILD: &str = "STEADFAST_MEMORY_CHILD";
const MASK: u8 = 0x5a;

fn masked(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| byte ^ MASK).collect()
}

/// Returns how often the token, given masked, is found in this process's memory.
fn copies(masked: &[u8]) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut memory = File::open("/proc/self/mem").unwrap();
    let mut found = 0;
    // Page by page, so that little of the memory is copied.
    let mut window = vec![0; 4096 + masked.len() - 1];
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|may| may.starts_with("rw"))) {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (start, end) = (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
        for page in (start..end).step_by(4096) {
            let length = window.len().min(usize::try_from(end - page).unwrap());
            // The window of the search must not be counted as a copy.
            if window.as_ptr().addr() as u64 / 4096 * 4096 <= page + 4096
                && page <= window.as_ptr().addr() as u64 + 2 * 4096
            {
                continue;
            }
            memory.seek(SeekFrom::Start(page)).unwrap();
            if memory.read_exact(&mut window[..length]).is_ok() {
                let same = |part: &[u8]| part.iter().zip(masked).all(|(byte, mask)| byte ^ MASK == *mask);
                found += window[..length].windows(masked.len()).filter(|part| same(part)).count();
            }
            window.fill(0);
        }
    }
    found
}

#[tokio::test]
async fn memory_child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, token, lists] = facts[..] else { panic!("four facts") };
    let token: Vec<u8> = token.split(',').map(|byte| byte.parse().unwrap()).collect();
    let plain: String = token.iter().map(|byte| char::from(byte ^ MASK)).collect();
    let client = Client::builder(base.parse().unwrap(), Access::token(key, plain).unwrap()).build().unwrap();
    for _ in 0..lists.parse().unwrap() {
        client.orders().await.unwrap();
    }
    let alive = copies(&token);
    client.shutdown().await;
    drop(client);
    // The connection's task ends with its client.
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
    println!("copies: {alive} {}", copies(&token));
}

async fn counted(lists: usize) -> (usize, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let sandbox = Sandbox::builder().build().unwrap();
    let served = sandbox.clone();
    tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    let own = sandbox.credentials();
    let token: Vec<String> = masked(&own.access_token).iter().map(ToString::to_string).collect();
    let facts = [base, own.api_key, token.join(","), lists.to_string()].join("\n");
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "memory::memory_child", "--test-threads=1", "--nocapture"]).env(CHILD, facts);
    let output = child.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = text.lines().find_map(|line| line.split_once("copies: ")).unwrap().1;
    let (alive, after) = counts.split_once(' ').unwrap();
    (alive.parse().unwrap(), after.trim().parse().unwrap())
}

#[tokio::test]
async fn m12_copies_of_a_token_in_memory_are_counted_and_do_not_grow_with_use() {
    let (alive, after) = counted(1).await;
    let (_, after_many) = counted(8).await;
    println!("figures: token_copies_alive={alive} token_copies_after_drop={after}");
    assert!(alive > 0, "the search finds what is there");
    assert!(after_many <= after + 4, "{after_many} copies after eight lists, {after} after one");
}
