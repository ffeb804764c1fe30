use std::{
    borrow::Cow,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use bytes::Bytes;
use steadfast_spec::{Form, OrderRequest, Tag};

/// How often a tag is drawn that no other order of the day has. One of a thousand million is taken by chance.
const DRAWS: usize = 16;

/// The field that carries a tag of our own with every order, so that lists show whose an order is.
///
/// For services that keep a short remark with an order and show it in the order list. A tag is ten characters; it is
/// drawn for each order and is the same for all of its sends. An order whose caller has filled that field itself carries
/// no tag and is recognised by its terms.
///
/// # Example
///
/// ```
/// use steadfast_dedup::{OrderTag, Settings};
///
/// let settings = Settings::new().tag(OrderTag::field("remarks").max_len(10));
/// # drop(settings);
/// ```
#[derive(Clone)]
pub struct OrderTag {
    field: Cow<'static, str>,
    max_len: usize,
    draw: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl OrderTag {
    /// Puts the tag in this field of an order's form; the same for all processes of a trading day.
    #[must_use]
    pub fn field(name: impl Into<Cow<'static, str>>) -> Self {
        let draw = Arc::new(|| RandomState::new().hash_one(0_u8));
        Self { field: name.into(), max_len: Tag::LEN, draw }
    }

    /// Sets how many characters the service keeps of that field; ten by default, which is a whole tag.
    ///
    /// With fewer, only the beginning of the tag is sent: it recognises an order only together with its terms. With
    /// fewer than six, no tag is sent.
    #[must_use]
    pub fn max_len(mut self, characters: usize) -> Self {
        self.max_len = characters;
        self
    }

    /// Sets where the random numbers of tags come from, for tests and simulations; the operating system by default.
    #[must_use]
    pub fn drawn_from(mut self, draw: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.draw = Arc::new(draw);
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.field
    }

    /// True if enough of a tag is sent to recognise it by.
    pub(crate) fn is_sent(&self) -> bool {
        self.max_len >= Tag::SHORTEST
    }

    /// Draws a tag for an order, unless its caller has filled the field, in any spelling, or no tag is free.
    pub(crate) fn draw(&self, order: &OrderRequest, is_free: impl Fn(Tag) -> bool) -> Option<Tag> {
        let form = order.form();
        let mut its = form.iter().filter(|(name, _)| name.trim().eq_ignore_ascii_case(&self.field));
        if its.any(|(_, own)| !own.trim().is_empty()) || !self.is_sent() {
            return None;
        }
        let mut drawn = std::iter::repeat_with(|| Tag::from_draw((self.draw)())).take(DRAWS);
        drawn.find(|tag| is_free(*tag))
    }

    /// Returns the text that an order carries.
    pub(crate) fn text(&self, tag: Tag) -> String {
        let mut text = tag.to_string();
        text.truncate(self.max_len);
        text
    }
}

impl fmt::Debug for OrderTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderTag").field("field", &self.field).field("max_len", &self.max_len).finish()
    }
}

/// Returns a form with this field, which its caller has left empty.
pub(crate) fn with_field(form: &[u8], name: &str, text: String) -> Bytes {
    let Ok(form) = Form::parse(form) else { return Bytes::copy_from_slice(form) };
    let others = form.iter().filter(|(other, _)| !other.trim().eq_ignore_ascii_case(name));
    let others =
        others.fold(Form::new(), |form, (other, value)| form.with(other.to_owned(), value.to_owned()));
    others.with(name.to_owned(), text).encode().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_takes_the_place_of_an_empty_field() {
        let tagged = |form: &str| with_field(form.as_bytes(), "remarks", "k3v9".to_owned());
        assert_eq!(tagged("symId=M%26M&qty=1"), "symId=M%26M&qty=1&remarks=k3v9");
        assert_eq!(tagged("Remarks=+&symId=M%26M"), "symId=M%26M&remarks=k3v9");
    }

    fn order(remarks: &str) -> OrderRequest {
        OrderRequest::from_fields([
            ("symId", "S"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "market"),
            ("product", "intraday"),
            ("validity", "day"),
            ("Remarks", remarks),
        ])
        .unwrap()
    }

    #[test]
    fn a_callers_own_remark_leaves_no_room_for_a_tag() {
        let tag = OrderTag::field("remarks");
        assert!(tag.draw(&order(""), |_| true).is_some() && tag.draw(&order(" "), |_| true).is_some());
        assert_eq!(tag.draw(&order("mine"), |_| true), None);
        assert_eq!(
            OrderTag::field("qty").draw(&order(""), |_| true),
            None,
            "it would take the quantity's place"
        );
    }

    #[test]
    fn a_tag_that_another_order_has_is_not_drawn() {
        let drawn = std::sync::atomic::AtomicU64::new(0);
        let next = move || drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let tag = OrderTag::field("remarks").drawn_from(next);
        let taken = Tag::from_draw(0);
        assert_eq!(tag.draw(&order(""), |tag| tag != taken), Some(Tag::from_draw(1)));
        assert_eq!(OrderTag::field("remarks").draw(&order(""), |_| false), None);
    }

    #[test]
    fn a_short_field_takes_the_beginning_of_a_tag() {
        let tag = Tag::from_draw(7);
        let text = |most| OrderTag::field("remarks").max_len(most).text(tag);
        assert_eq!((text(8), text(20)), (tag.to_string()[..8].to_owned(), tag.to_string()));
        assert_eq!(OrderTag::field("remarks").max_len(5).draw(&order(""), |_| true), None);
    }
}
