/// The most zones that one request may fall under.
pub(crate) const MOST_ZONES: usize = 4;

/// The keys of one request, by their places in the limiter's table; stored inline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeySet {
    ids: [u32; MOST_ZONES],
    len: u8,
}

impl KeySet {
    /// Adds `id` unless it is present. False if there is no room.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        if self.iter().any(|known| known == id as usize) {
            return true;
        }
        match self.ids.get_mut(usize::from(self.len)) {
            Some(place) => *place = id,
            None => return false,
        }
        self.len += 1;
        true
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let ids = self.ids;
        (0..usize::from(self.len)).map(move |place| ids[place % MOST_ZONES] as usize)
    }
}

impl From<u32> for KeySet {
    fn from(id: u32) -> Self {
        Self { ids: [id; MOST_ZONES], len: 1 }
    }
}
