use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use steadfast::{
    OrderRequest,
    dedup::{
        Answer, AttemptNo, TradingDay, IntentNo, OrderTracker, Session, Settings,
        journal::{Disk, DiskFile, Durable, Entry, Journal, JournalError, Log, Record},
        unresolved,
    },
    ext::{Account, IntentId},
};
use steadfast_call::{Outcome, Resend};

const PATH: &str = "orders.journal";

/// Recovers from an input: from the bytes themselves if the first is even, otherwise from a journal that they write and
/// damage.
///
/// In the latter case each byte up to 0xff is an entry or a restart. The bytes after it are changes of three bytes:
/// kind and place.
///
/// # Panics
///
/// If recovery panics, returns records that were never written, changes a file that it refuses, finds more doubts or
/// others the second time, loses a durable send after a single changed byte without an error, or leaves an order in
/// doubt unreported.
pub fn journal(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    if first % 2 == 0 {
        recover(rest);
        return;
    }
    let end = rest.iter().position(|&byte| byte == 0xff).unwrap_or(rest.len());
    let (script, changes) = rest.split_at(end);
    let written = write(script);
    let changes: Vec<&[u8]> = changes.get(1..).unwrap_or_default().chunks_exact(3).take(16).collect();
    let mut bytes = written.bytes.clone();
    for change in &changes {
        damage(&mut bytes, change);
    }
    let Some(found) = recover(&bytes) else {
        assert_ne!(bytes, written.bytes, "a whole journal is refused");
        return;
    };
    let mut rest = written.entries.iter();
    for entry in &found {
        let is_it = |other: &&Entry| *other == entry || without_session((*other).clone()) == *entry;
        assert!(rest.any(|other| is_it(&other)), "never written, or not there: {entry:?}");
    }
    let is_one_flip = changes.len() == 1 && changes[0][0] % 4 == 0;
    if changes.is_empty() || is_one_flip {
        let sends: BTreeSet<u64> = found.iter().filter_map(intent).collect();
        assert!(written.durable.is_subset(&sends), "lost without a word: {:?}", written.durable);
    }
}

/// Returns what a process finds in a file of these bytes; `None` if it refuses them.
fn recover(bytes: &[u8]) -> Option<Vec<Entry>> {
    let disk = Memory::holding(bytes);
    let found = match Log::read(&disk, Path::new(PATH)) {
        Ok(found) => found.expect("there is a file"),
        Err(error) => {
            assert!(!matches!(error, JournalError::Poisoned | JournalError::InUse { .. }));
            assert!(Log::open(disk.clone(), PATH).is_err(), "read refuses it: {error}");
            assert_eq!(disk.bytes(), bytes, "what is refused is left as it is");
            return None;
        }
    };
    for times in 0..3 {
        let mut log = Log::open(disk.clone(), PATH).expect("what can be read can be opened");
        let now: Vec<Entry> = log.entries().cloned().collect();
        if times == 2 {
            log.append_durably([&begun(u64::MAX, 0, 0)]).expect("it can go on");
            drop(log);
            let found = Log::read(&disk, Path::new(PATH)).expect("it goes on").expect("a file");
            assert!(found.iter().any(|entry| intent(entry) == Some(u64::MAX)));
        } else {
            // A decided order of a past day may be removed with that day; one in doubt never is.
            let mut before = found.iter();
            assert!(
                now.iter().all(|entry| before.any(|other| other == entry)),
                "recovered {} times",
                times + 1
            );
            assert_eq!(unresolved(&now), unresolved(&found), "recovered {} times", times + 1);
        }
    }
    // Listing the orders in doubt and recovering them give the same orders.
    let listed: BTreeSet<(Account, u64)> =
        unresolved(&found).into_iter().map(|order| (order.account, order.intent.0)).collect();
    let tracker = OrderTracker::journaled(Settings::default(), Known(Mutex::new(found.clone())));
    let told: BTreeSet<(Account, u64)> =
        tracker.recovered().unwrap_or_default().into_iter().map(|order| (order.account, order.intent.0)).collect();
    assert_eq!(listed, told, "{found:?}");
    Some(found)
}

/// A journal that was written, with the sends reported for it.
struct Written {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Sends that were reported durable and not refused later.
    durable: BTreeSet<u64>,
}

fn write(script: &[u8]) -> Written {
    let disk = Memory::default();
    let mut log = Log::open(disk.clone(), PATH).expect("a new journal");
    let (mut entries, mut durable) = (Vec::new(), BTreeSet::new());
    // The kind of each intent, and how often it was sent.
    let (mut intents, mut decided) = (Vec::<(u8, usize)>::new(), BTreeSet::new());
    // Each restart reads everything written, so short scripts keep the fuzzer fast.
    for byte in script.iter().take(64) {
        let at = usize::from(byte >> 3) % intents.len().max(1);
        let (which, last) = (at as u64, intents.get(at).map_or(0, |(_, sends)| sends - 1));
        let entry = match byte % 8 {
            // A decided order is never sent again.
            1 if let Some((kind, sends)) = intents.get_mut(at).filter(|_| !decided.contains(&which)) => {
                *sends += 1;
                begun(which, last + 1, *kind)
            }
            0 | 1 => {
                intents.push((byte >> 3, 1));
                begun(intents.len() as u64 - 1, 0, byte >> 3)
            }
            2 => closed(which, last, Outcome::Accepted { order_id: Some(format!("o{which}").into()) }),
            3 => closed(which, last, Outcome::Unknown { resend: Resend::AfterAbsence }),
            4 => closed(which, last, Outcome::Rejected),
            5 => {
                entry(Record::Found { intent: IntentNo(which), order_id: format!("o{which}"), status: None })
            }
            6 => entry(Record::Seen {
                session: Session::hashed(7),
                day: TradingDay(i64::from(byte >> 6)),
                order_ids: vec![byte.to_string()],
                complete: byte & 32 == 0,
            }),
            _ => {
                drop(log);
                log = Log::open(disk.clone(), PATH).expect("its own journal");
                continue;
            }
        };
        if let Record::Closed { outcome: Outcome::Accepted { .. }, .. } | Record::Found { .. } = &entry.record
        {
            decided.insert(which);
        }
        match &entry.record {
            Record::Begun { attempt, .. } => {
                log.append_durably([&entry]).expect("memory does not fail");
                durable.insert(attempt.intent.0);
            }
            // A past day removes its decided orders, so their sends are not expected any more.
            Record::Closed { outcome, .. } if !outcome.is_unknown() => {
                log.append([&entry]).expect("memory does not fail");
                durable.remove(&which);
            }
            Record::Found { .. } => {
                log.append([&entry]).expect("memory does not fail");
                durable.remove(&which);
            }
            _ => log.append([&entry]).expect("memory does not fail"),
        }
        entries.push(entry);
    }
    drop(log);
    Written { bytes: disk.bytes(), entries, durable }
}

fn damage(bytes: &mut Vec<u8>, change: &[u8]) {
    let at = usize::from(change[1]) << 8 | usize::from(change[2]);
    let at = at % bytes.len().max(1);
    match change[0] % 4 {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (change[0] >> 5);
            }
        }
        1 => bytes.truncate(at),
        2 => {
            let end = (at + 64).min(bytes.len());
            bytes[at..end].fill(0);
        }
        // Never the whole of a long journal: sixteen such changes would make it some thousand times as long.
        _ => {
            let again = bytes[at..(at + 512).min(bytes.len())].to_vec();
            bytes.extend(again);
        }
    }
}

fn begun(number: u64, index: usize, kind: u8) -> Entry {
    let qty = (number % 9 + 1).to_string();
    let fields = [
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", qty.as_str()),
        ("side", "buy"),
        ("type", "market"),
        ("product", "intraday"),
        ("validity", "day"),
    ];
    entry(Record::Begun {
        attempt: AttemptNo { intent: IntentNo(number), index },
        session: Session::hashed(7),
        day: TradingDay(i64::from(kind & 3)),
        name: (kind & 4 == 0).then(|| IntentId::new(format!("line-{number}"))),
        order: Arc::new(OrderRequest::from_fields(fields).expect("an order")),
        tag: None,
    })
}

fn closed(number: u64, index: usize, outcome: Outcome) -> Entry {
    let attempt = AttemptNo { intent: IntentNo(number), index };
    entry(Record::Closed { attempt, outcome, answer: Answer::Status(200) })
}

fn entry(record: Record) -> Entry {
    Entry { account: Account::default(), record }
}

fn intent(entry: &Entry) -> Option<u64> {
    if let Record::Begun { attempt, .. } = &entry.record { Some(attempt.intent.0) } else { None }
}

/// Returns the entry as it is found after a gap.
fn without_session(mut entry: Entry) -> Entry {
    if let Record::Begun { session, .. } = &mut entry.record {
        *session = Session::default();
    }
    entry
}

/// A journal that has been read already.
#[derive(Debug)]
struct Known(Mutex<Vec<Entry>>);

impl Journal for Known {
    fn recover(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics"))
    }

    fn append(&self, _: Entry) {}

    fn append_durably(&self, _: Entry) -> Durable {
        Durable::known(Ok(()))
    }

    fn flush(&self) -> Durable {
        Durable::known(Ok(()))
    }

    fn salt(&self) -> [u8; 16] {
        [0; 16]
    }
}

type Files = BTreeMap<PathBuf, Arc<Mutex<Vec<u8>>>>;

/// A disk in memory.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Files>>);

#[derive(Debug)]
struct Open(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn holding(bytes: &[u8]) -> Self {
        let file = Arc::new(Mutex::new(bytes.to_vec()));
        Self(Arc::new(Mutex::new(BTreeMap::from([(PathBuf::from(PATH), file)]))))
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        self.0.lock().expect("nobody panics")
    }

    fn bytes(&self) -> Vec<u8> {
        let files = self.files();
        files.get(Path::new(PATH)).expect("a file").lock().expect("nobody panics").clone()
    }
}

impl Disk for Memory {
    type File = Open;
    type Lock = ();

    fn lock(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn holds(&self, _: &Path, (): &()) -> io::Result<bool> {
        Ok(true)
    }

    fn note(&self, (): &mut ()) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn set_note(&self, (): &mut (), _: &[u8], _: bool) -> io::Result<()> {
        Ok(())
    }

    fn is_linked(&self, _: &Open) -> io::Result<bool> {
        Ok(false)
    }

    fn is_in_place(&self, path: &Path, file: &Open, size: u64) -> io::Result<bool> {
        let here = self.files().get(path).is_some_and(|named| Arc::ptr_eq(named, &file.0));
        Ok(here && file.0.lock().expect("nobody panics").len() as u64 == size)
    }

    fn open(&self, path: &Path) -> io::Result<Option<Open>> {
        Ok(self.files().get(path).cloned().map(Open))
    }

    fn create(&self, path: &Path) -> io::Result<Open> {
        let file = Arc::new(Mutex::new(Vec::new()));
        self.files().insert(path.to_owned(), file.clone());
        Ok(Open(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Open {
    fn read_all(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().expect("nobody panics").clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
