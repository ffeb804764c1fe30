use std::{collections::BTreeSet, fmt, sync::Mutex};

/// The place of a choice: what is chosen, for which thing, and for which turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    // Ordered by thing first, so that the choices of one order are together on a tape.
    of: u64,
    nth: u64,
    what: &'static str,
}

impl Site {
    /// Creates a site that is asked once.
    #[must_use]
    pub const fn new(what: &'static str) -> Self {
        Self { of: 0, nth: 0, what }
    }

    /// The same choice for thing number `of`.
    #[must_use]
    pub const fn of(self, of: u64) -> Self {
        Self { of, ..self }
    }

    /// The same choice in turn `nth`.
    #[must_use]
    pub const fn nth(self, nth: u64) -> Self {
        Self { nth, ..self }
    }

    /// Returns what is chosen.
    #[must_use]
    pub const fn what(self) -> &'static str {
        self.what
    }

    /// Returns the thing that it is chosen for.
    #[must_use]
    pub const fn thing(self) -> u64 {
        self.of
    }

    /// Returns the turn.
    #[must_use]
    pub const fn turn(self) -> u64 {
        self.nth
    }

    /// Returns a site read from a tape. Its name is kept for the life of the process; there are few names.
    pub(crate) fn named(what: &str, of: u64, nth: u64) -> Self {
        static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let what = names.get(what).copied().unwrap_or_else(|| {
            let name: &'static str = Box::leak(what.to_owned().into_boxed_str());
            names.insert(name);
            name
        });
        Self { of, nth, what }
    }

    /// Returns 64 well-mixed bits from the seed and the site.
    pub(crate) fn mixed(self, seed: u64) -> u64 {
        // FNV-1a over the name, then the finaliser of splitmix64 after each number.
        let name = self.what.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        [name, self.of, self.nth].into_iter().fold(finalise(seed), |hash, number| finalise(hash ^ number))
    }
}

fn finalise(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.what, self.of, self.nth)
    }
}
