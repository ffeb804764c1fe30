use http::Extensions;

use crate::{
    Outcome,
    ext::{Began, Deadline, Route, SendBy, SendStamp, Sends, Ticket, TokenGeneration},
    place::Passed,
};

/// What a layer tells the others about a call, stamped on its request or on its answer.
///
/// An entry of its own for each costs an allocation each. So all stamps of a request, and all of an answer, are one
/// entry of its extensions, and are read and set here.
///
/// Whoever knows none of this, a caller or a layer of other people, inserts a stamp like any other extension. Such an
/// entry comes first, and a layer that sets the stamp anew sets it there. It costs more: its request is copied whole by
/// every layer that may send it again.
///
/// # Example
///
/// ```
/// use http::Extensions;
/// use steadfast_spec::ext::{Stamp, TokenGeneration};
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
    /// The stamp of a request or an answer with these extensions.
    #[must_use]
    fn of(extensions: &Extensions) -> Option<&Self> {
        Stamped::of(extensions).stamp()
    }

    /// Sets it; there is at most one.
    fn put(self, extensions: &mut Extensions) {
        // Nearly always there is nothing beside them.
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

    /// Takes it away.
    fn remove(extensions: &mut Extensions) {
        extensions.remove::<Self>();
        if let Some(stamps) = extensions.get_mut::<Stamps>() {
            *Self::field_mut(stamps) = None;
        }
    }
}

impl<T: Field> Stamp for T {}

/// What extensions hold, found by one look, for whoever reads more than one of them.
///
/// # Example
///
/// ```
/// use http::Extensions;
/// use steadfast_spec::{Lane, ext::{Stamp, Stamped, TokenGeneration, Outcome}};
///
/// let mut answer = Extensions::new();
/// TokenGeneration(1).put(&mut answer);
/// answer.insert(Lane::Bulk);
///
/// let stamped = Stamped::of(&answer);
/// assert_eq!(stamped.stamp(), Some(&TokenGeneration(1)));
/// assert_eq!(stamped.stamp::<Outcome>(), None);
/// assert_eq!(stamped.beside(), Some(&Lane::Bulk));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stamped<'a> {
    stamps: Option<&'a Stamps>,
    /// The extensions, if they hold anything but the stamps.
    beside: Option<&'a Extensions>,
}

impl<'a> Stamped<'a> {
    /// What `extensions` hold.
    #[must_use]
    pub fn of(extensions: &'a Extensions) -> Self {
        let stamps = extensions.get::<Stamps>();
        let beside = (extensions.len() > usize::from(stamps.is_some())).then_some(extensions);
        Self { stamps, beside }
    }

    /// A stamp, as [`Stamp::of`] reads it.
    #[must_use]
    pub fn stamp<T: Stamp>(&self) -> Option<&'a T> {
        self.beside().or_else(|| self.stamps?.get())
    }

    /// Any other extension.
    #[must_use]
    pub fn beside<T: Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.beside?.get()
    }
}

/// The stamps of a request or of an answer.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    route: Option<Route>,
    deadline: Option<Deadline>,
    send_by: Option<SendBy>,
    began: Option<Began>,
    generation: Option<TokenGeneration>,
    ticket: Option<Ticket>,
    send: Option<SendStamp>,
    sends: Option<Sends>,
    passed: Option<Passed>,
    outcome: Option<Outcome>,
}

impl Stamps {
    /// Of a request that may be sent again: that it was sent is no longer true of the next send.
    pub(crate) fn of_next_send(&self) -> Self {
        Self { send: None, ..self.clone() }
    }

    pub(crate) fn get<T: Field>(&self) -> Option<&T> {
        T::field(self).as_ref()
    }
}

/// Where a stamp stands among the others; nobody else can add one.
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
    route: Route,
    deadline: Deadline,
    send_by: SendBy,
    began: Began,
    generation: TokenGeneration,
    ticket: Ticket,
    send: SendStamp,
    sends: Sends,
    passed: Passed,
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

    #[test]
    fn a_copy_of_a_request_has_stamps_of_its_own() {
        let mut first = Extensions::new();
        TokenGeneration(1).put(&mut first);
        let repeat = first.clone();
        TokenGeneration(2).put(&mut first);
        assert_eq!(TokenGeneration::of(&repeat), Some(&TokenGeneration(1)));
    }
}
