use steadfast_spec::{AssetClass, OptionKind, SymId, SymIdShape};

/// Reads an instrument identifier and joins its parts again.
///
/// # Panics
///
/// If the joined parts differ from the text, or a part is empty.
pub fn sym_id(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(id) = text.parse::<SymId>() else {
        assert!(text.trim().is_empty(), "only an empty text is no identifier");
        return;
    };
    let text = text.trim();
    assert_eq!((id.as_str(), id.to_string().as_str()), (text, text), "the text is kept, but for space around it");
    let Some(shape) = id.shape() else {
        assert!(id.asset_class().is_none() && id.exchange().is_none());
        return;
    };
    let (class, parts, joined) = match shape {
        SymIdShape::Equity { symbol, series, exchange } => {
            (AssetClass::Equity, vec![symbol, series, exchange], format!("EQT_{symbol}_{series}_{exchange}"))
        }
        SymIdShape::Future { symbol, exchange, expiry } => (
            AssetClass::Future,
            vec![symbol, exchange, expiry],
            format!("FUT_{symbol}_FUT_{exchange}_{expiry}"),
        ),
        SymIdShape::Option { symbol, kind, exchange, expiry, strike } => {
            let kind = match kind {
                OptionKind::Call => "CE",
                OptionKind::Put => "PE",
            };
            // A strike has many spellings: its text is the rest after the other parts.
            let start = format!("OPT_{symbol}_{kind}_{exchange}_{expiry}_");
            let written =
                text.strip_prefix(&start).unwrap_or_else(|| panic!("{start} does not begin {text}"));
            assert_eq!(steadfast_spec::parse_decimal(written), Ok(strike));
            assert!(!strike.is_sign_negative());
            (AssetClass::Option, vec![symbol, exchange, expiry], format!("{start}{written}"))
        }
        other => panic!("a shape that §2 does not have: {other:?}"),
    };
    assert_eq!(joined, text);
    assert_eq!(id.asset_class(), Some(class));
    assert!(parts.iter().all(|part| !part.is_empty() && !part.contains(char::is_whitespace)), "{parts:?}");
    // Only a symbol may hold underscores.
    assert!(parts[1..].iter().all(|part| !part.contains('_')), "{parts:?}");
}
