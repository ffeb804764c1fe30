use std::{collections::HashMap, sync::Arc};

use redis::Value;
use steadfast_dedup::journal::Entry;

use crate::{
    error::StoreError,
    orders::{
        error::OrdersError,
        ledger::{Fence, HaltState, Lease, Renewal, Taken, Told, Turn},
        scripts::OrdersScript,
    },
    store::Store,
};

/// The owner and the journal of one account's orders in the store.
#[derive(Debug)]
pub(crate) struct Book {
    store: Arc<Store>,
    /// The hash of the owner, and the stream of the journal.
    keys: [String; 2],
}

/// How many entries are read at a time.
const PAGE: usize = 1_000;

/// The store's word, and the turns of the kill switch that it told with it.
pub(crate) type With<T> = (T, u64);

/// An entry of a stream: its id, and its fields.
type Written = (String, HashMap<String, Vec<u8>>);

impl Book {
    pub(crate) fn new(store: Arc<Store>, account: &str) -> Self {
        let key = |of| format!("{{sf:{account}}}:{of}");
        Self { store, keys: [key("orders"), key("journal")] }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Asks for the orders, which may be taken if the lease is still as it was `seen`. The process has `heard` of so many
    /// turns of the kill switch. Also returns the salt of their journal.
    pub(crate) async fn take(
        &self,
        seen: Option<&Lease>,
        owner: &str,
        name: &str,
        mark: &str,
        heard: u64,
    ) -> Result<With<(Taken, String)>, StoreError> {
        let seen = seen.map_or_else(<[String; 3]>::default, |lease| {
            [lease.fence.counter.to_string(), lease.fence.owner.clone(), lease.renewals.to_string()]
        });
        let heard = heard.to_string();
        let arguments = seen.iter().map(String::as_str).chain([owner, name, mark, &heard]).map(str::as_bytes);
        let reply: Vec<String> = self.run(OrdersScript::TAKE, arguments).await?;
        let reply: Vec<&str> = reply.iter().map(String::as_str).collect();
        let number = |text: &str| self.number(text);
        let (taken, salt, turns) = match reply[..] {
            ["1", counter, entries, salt, turns] => {
                (Taken::Yes { counter: number(counter)?, entries: number(entries)? }, salt, turns)
            }
            ["0", counter, owner, renewals, name, turns] => {
                let fence = Fence { counter: number(counter)?, owner: owner.to_owned() };
                let lease = Lease { fence, renewals: number(renewals)?, name: name.to_owned() };
                (Taken::Owned(lease), "", turns)
            }
            ["-1", mark, turns] => (Taken::MayLack(mark.to_owned()), "", turns),
            _ => return Err(self.store.is_garbled()),
        };
        Ok(((taken, salt.to_owned()), number(turns)?))
    }

    pub(crate) async fn renew(
        &self,
        fence: &Fence,
        known: u64,
        renewal: Renewal,
    ) -> Result<With<Told>, StoreError> {
        let numbers = [fence.counter, known, renewal.number, renewal.heard];
        let [counter, known, number, heard] = numbers.map(|it| it.to_string());
        let still_owns = if renewal.still_owns { "1" } else { "0" };
        let arguments = [&*counter, &*fence.owner, &*known, &*number, still_owns, &*heard].map(str::as_bytes);
        self.told(self.run(OrdersScript::RENEW, arguments).await?)
    }

    pub(crate) async fn append(
        &self,
        fence: &Fence,
        before: u64,
        entries: &[Vec<u8>],
    ) -> Result<With<Told>, StoreError> {
        let (counter, before) = (fence.counter.to_string(), before.to_string());
        let arguments = [&*counter, &*fence.owner, &*before].map(str::as_bytes);
        let arguments = arguments.into_iter().chain(entries.iter().map(Vec::as_slice));
        let arguments: Vec<&[u8]> = arguments.collect();
        let text = |run: &str| OrdersScript::APPEND.text(run);
        self.told(self.store.evaluate_kept(text, &self.keys, &arguments).await?)
    }

    pub(crate) async fn release(&self, fence: &Fence) -> Result<(), StoreError> {
        let counter = fence.counter.to_string();
        let _: Value = self.run(OrdersScript::RELEASE, [counter.as_bytes(), fence.owner.as_bytes()]).await?;
        Ok(())
    }

    /// Turns the kill switch, or only looks.
    pub(crate) async fn turn(&self, turn: Turn) -> Result<HaltState, StoreError> {
        let (what, number) = match turn {
            Turn::Halt(heard) => ("halt", heard),
            Turn::Resume(halt) => ("resume", halt),
            Turn::Look(heard) => ("look", heard),
        };
        let number = number.to_string();
        let (script, arguments) = (OrdersScript::HALT, [what.as_bytes(), number.as_bytes()]);
        let reply: Vec<String> = match turn {
            // A server that a replica has taken the place of would show an owner that is silent, while it goes on at the other.
            Turn::Halt(_) => self.store.evaluate_kept(|run| script.text(run), &self.keys, &arguments).await?,
            Turn::Resume(_) | Turn::Look(_) => self.run(script, arguments).await?,
        };
        let reply: Vec<&str> = reply.iter().map(String::as_str).collect();
        let (state, owner) = match reply[..] {
            [turns, heard, is_known] => ([turns, heard, is_known], None),
            [turns, heard, is_known, counter, owner, renewals] => {
                let fence = Fence { counter: self.number(counter)?, owner: owner.to_owned() };
                ([turns, heard, is_known], Some((fence, self.number(renewals)?)))
            }
            _ => return Err(self.store.is_garbled()),
        };
        let [turns, heard, is_known] = state;
        Ok(HaltState {
            turns: self.number(turns)?,
            heard: self.number(heard)?,
            owner,
            is_known: is_known == "1",
        })
    }

    /// Takes the journal as it is. False if the store keeps another mark.
    pub(crate) async fn accept(&self, mark: &str) -> Result<bool, StoreError> {
        let reply: Vec<u8> = self.run(OrdersScript::ACCEPT, [mark.as_bytes()]).await?;
        Ok(reply == [1])
    }

    /// Reads the entries behind `last`, the id of one, and returns the id of the last one; `None` if there is no more.
    pub(crate) async fn read(
        &self,
        last: &str,
        entries: &mut Vec<Entry>,
    ) -> Result<Option<String>, OrdersError> {
        let mut range = redis::cmd("XRANGE");
        range.arg(&self.keys[1]).arg(format!("({last}")).arg("+").arg("COUNT").arg(PAGE);
        let page: Vec<Written> = self.store.query(&range).await?;
        for (id, fields) in &page {
            let entry = fields.get("entry").and_then(|entry| Entry::decode(entry));
            entries.push(entry.ok_or_else(|| OrdersError::UnknownEntry {
                store: self.store.name().into(),
                entry: id.as_str().into(),
            })?);
        }
        Ok(page.into_iter().next_back().map(|(id, _)| id))
    }

    fn told(&self, reply: Vec<String>) -> Result<With<Told>, StoreError> {
        let reply: Vec<&str> = reply.iter().map(String::as_str).collect();
        let (told, turns) = match reply[..] {
            ["1", turns] => (Told::Done, turns),
            ["0", name, turns] => (Told::NotOwner(name.to_owned()), turns),
            ["-1", turns] => (Told::Lost, turns),
            _ => return Err(self.store.is_garbled()),
        };
        Ok((told, self.number(turns)?))
    }

    fn number(&self, text: &str) -> Result<u64, StoreError> {
        text.parse().map_err(|_| self.store.is_garbled())
    }

    async fn run<'a, T: redis::FromRedisValue>(
        &self,
        script: OrdersScript,
        arguments: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<T, StoreError> {
        let arguments: Vec<&[u8]> = arguments.into_iter().collect();
        self.store.evaluate(|run| script.text(run), &self.keys, &arguments).await
    }
}
