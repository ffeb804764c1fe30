/// True for characters that change how the text around them is shown: control characters and changes of writing
/// direction.
#[must_use]
pub fn changes_display(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
