/// A closed set of readings, the first of which is the default.
pub(super) trait Choice: Copy + PartialEq + 'static {
    const ALL: &'static [Self];
    const NAMES: &'static [&'static str];

    fn named(name: &str) -> Option<Self> {
        let index = Self::NAMES.iter().position(|known| *known == name)?;
        Self::ALL.get(index).copied()
    }

    /// Returns the reading with this number; beyond the last one, the default.
    fn nth(index: u32) -> Self {
        Self::ALL.get(index as usize).copied().unwrap_or(Self::ALL[0])
    }

    fn name(self) -> &'static str {
        let index = Self::ALL.iter().position(|known| *known == self).unwrap_or_default();
        Self::NAMES[index]
    }
}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $variant:ident = $text:literal,)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$about])* $variant,)+
        }

        impl Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const NAMES: &'static [&'static str] = &[$($text),+];
        }
    )+};
}

pub(super) use choices;
