use crate::{
    core::{decision::ZoneId, key_set::MOST_ZONES},
    error::Refusal,
};

/// The zones of one request, each with the key under which it counts the request; stored inline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneKeys {
    all: [(ZoneId, u64); MOST_ZONES],
    len: usize,
}

impl Default for ZoneKeys {
    fn default() -> Self {
        Self { all: [(ZoneId(0), 0); MOST_ZONES], len: 0 }
    }
}

impl ZoneKeys {
    pub(crate) fn push(&mut self, zone: (ZoneId, u64)) -> Result<(), Refusal> {
        let place = self.all.get_mut(self.len).ok_or(Refusal::TooManyZones { most: MOST_ZONES })?;
        *place = zone;
        self.len += 1;
        Ok(())
    }

    pub(crate) fn as_slice(&self) -> &[(ZoneId, u64)] {
        &self.all[..self.len]
    }
}
