use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

/// The number of times that each named thing happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Counts(BTreeMap<Cow<'static, str>, u64>);

impl Counts {
    pub(crate) fn add(&mut self, name: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(Cow::Borrowed(name)).or_default() += times;
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (name, times) in other.0 {
            *self.0.entry(name).or_default() += times;
        }
    }

    pub(crate) fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, times)| (name.as_ref(), *times))
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.values().sum()
    }
}

impl FromIterator<(&'static str, u64)> for Counts {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(counts: I) -> Self {
        let mut all = Self::default();
        counts.into_iter().for_each(|(name, times)| all.add(name, times));
        all
    }
}
