use http::Extensions;

use crate::{
    Outcome,
    ext::{SendStamp, TokenGeneration},
};

/// A value that a layer leaves on an answer for layers further out.
///
/// A separate entry for each would cost an allocation each. So all stamps of an answer are one entry of its extensions,
/// and are read and set here. A foreign layer that does not know this may insert a stamp like any other extension: such
/// an entry takes precedence, and a layer that sets the stamp again sets it there.
///
/// # Example
///
/// ```
/// use http::Extensions;
/// use steadfast_call::ext::{Stamp, TokenGeneration};
///
/// let mut answer = Extensions::new();
/// TokenGeneration(1).put(&mut answer);
/// assert_eq!(TokenGeneration::of(&answer), Some(&TokenGeneration(1)));
///
/// answer.insert(TokenGeneration(2));
/// assert_eq!(TokenGeneration::of(&answer), Some(&TokenGeneration(2)));
/// TokenGeneration(3).put(&mut answer);
/// assert_eq!(TokenGeneration::of(&answer), Some(&TokenGeneration(3)));
/// ```
pub trait Stamp: Field {
    /// Returns the stamp of an answer with these extensions.
    #[must_use]
    fn of(extensions: &Extensions) -> Option<&Self> {
        Stamped::of(extensions).stamp()
    }

    /// Sets the stamp, in place of an earlier one.
    fn put(self, extensions: &mut Extensions) {
        // The usual case: there is no other extension.
        if extensions.len() == 1
            && let Some(stamps) = extensions.get_mut::<Stamps>()
        {
            *Self::field_mut(stamps) = Some(self);
            return;
        }
        match extensions.get_mut::<Self>() {
            Some(own) => *own = self,
            None => *Self::field_mut(extensions.get_or_insert_default()) = Some(self),
        }
    }

    /// Removes the stamp.
    fn remove(extensions: &mut Extensions) {
        extensions.remove::<Self>();
        if let Some(stamps) = extensions.get_mut::<Stamps>() {
            *Self::field_mut(stamps) = None;
        }
    }
}

impl<T: Field> Stamp for T {}

/// The content of extensions, found by one look, for readers of several values.
///
/// # Example
///
/// ```
/// use http::Extensions;
/// use steadfast_call::ext::{Outcome, Stamp, Stamped, TokenGeneration};
///
/// let mut answer = Extensions::new();
/// TokenGeneration(1).put(&mut answer);
/// answer.insert("another");
///
/// let stamped = Stamped::of(&answer);
/// assert_eq!(stamped.stamp(), Some(&TokenGeneration(1)));
/// assert_eq!(stamped.stamp::<Outcome>(), None);
/// assert_eq!(stamped.beside(), Some(&"another"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stamped<'a> {
    stamps: Option<&'a Stamps>,
    /// The extensions, if they hold anything but the stamps.
    beside: Option<&'a Extensions>,
}

impl<'a> Stamped<'a> {
    /// Looks into `extensions`.
    #[must_use]
    pub fn of(extensions: &'a Extensions) -> Self {
        let stamps = extensions.get::<Stamps>();
        let beside = (extensions.len() > usize::from(stamps.is_some())).then_some(extensions);
        Self { stamps, beside }
    }

    /// Returns a stamp, as [`Stamp::of`] reads it.
    #[must_use]
    pub fn stamp<T: Stamp>(&self) -> Option<&'a T> {
        self.beside().or_else(|| self.stamps?.get())
    }

    /// Returns any other extension.
    #[must_use]
    pub fn beside<T: Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.beside?.get()
    }
}

/// All stamps of an answer.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    generation: Option<TokenGeneration>,
    send: Option<SendStamp>,
    outcome: Option<Outcome>,
}

impl Stamps {
    pub(crate) fn get<T: Field>(&self) -> Option<&T> {
        T::field(self).as_ref()
    }
}

/// Returns the place of a stamp among the others. Other crates cannot add stamps.
pub trait Field: Clone + Send + Sync + 'static {
    #[doc(hidden)]
    fn field(stamps: &Stamps) -> &Option<Self>;
    #[doc(hidden)]
    fn field_mut(stamps: &mut Stamps) -> &mut Option<Self>;
}

macro_rules! fields {
    ($($field:ident: $stamp:ty),+ $(,)?) => {$(
        impl Field for $stamp {
            fn field(stamps: &Stamps) -> &Option<Self> {
                &stamps.$field
            }

            fn field_mut(stamps: &mut Stamps) -> &mut Option<Self> {
                &mut stamps.$field
            }
        }
    )+};
}

fields! {
    generation: TokenGeneration,
    send: SendStamp,
    outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stamps_are_one_entry() {
        let mut extensions = Extensions::new();
        assert_eq!(TokenGeneration::of(&extensions), None);
        TokenGeneration(7).put(&mut extensions);
        Outcome::Rejected.put(&mut extensions);
        assert_eq!(extensions.len(), 1);
        assert_eq!(TokenGeneration::of(&extensions), Some(&TokenGeneration(7)));
        assert_eq!(Outcome::of(&extensions), Some(&Outcome::Rejected));
        TokenGeneration::remove(&mut extensions);
        assert_eq!(TokenGeneration::of(&extensions), None);
        assert_eq!(Outcome::of(&extensions), Some(&Outcome::Rejected));
    }

    #[test]
    fn an_entry_of_its_own_is_the_one_that_counts_whoever_came_first() {
        let mut before = Extensions::new();
        before.insert(TokenGeneration(1));
        TokenGeneration(2).put(&mut before);
        let mut after = Extensions::new();
        TokenGeneration(1).put(&mut after);
        after.insert(TokenGeneration(2));
        for mut extensions in [before, after] {
            assert_eq!(TokenGeneration::of(&extensions), Some(&TokenGeneration(2)));
            assert_eq!(extensions.get(), Some(&TokenGeneration(2)));
            TokenGeneration::remove(&mut extensions);
            assert_eq!(TokenGeneration::of(&extensions), None);
        }
    }
}
