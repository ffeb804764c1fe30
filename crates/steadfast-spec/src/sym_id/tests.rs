use proptest::prelude::*;

use super::*;

fn id(text: &str) -> SymId {
    text.parse().unwrap()
}

#[test]
fn spellings_of_one_instrument_are_folded_to_one_text() {
    for (text, folded) in [
        ("EQT_Infy_EQ_NSE", "EQT_INFY_EQ_NSE"),
        ("FUT_NIFTY_FUT_NFO_05Dec2026", "FUT_NIFTY_FUT_NFO_5DEC26"),
        ("FUT_NIFTY_FUT_NFO_5DEC26", "FUT_NIFTY_FUT_NFO_5DEC26"),
        ("FUT_NIFTY_FUT_NFO_05-Dec-2026", "FUT_NIFTY_FUT_NFO_5DEC26"),
        ("OPT_NIFTY_CE_NFO_28Nov2026_24500.50", "OPT_NIFTY_CE_NFO_28NOV26_24500.5"),
        ("OPT_NIFTY_PE_NFO_28NOV26_0100", "OPT_NIFTY_PE_NFO_28NOV26_100"),
        ("Infy-eq", "INFY-EQ"),
    ] {
        assert_eq!(id(text).folded().as_str(), folded);
        assert_eq!(id(folded).folded(), id(folded));
    }
}

#[test]
fn space_around_it_is_none_of_it() {
    assert_eq!(id(" EQT_INFY_EQ_NSE\t"), id("EQT_INFY_EQ_NSE"));
    assert_eq!(" ".parse::<SymId>(), Err(EmptySymId));
}

#[test]
fn the_three_shapes_are_understood() {
    assert_eq!(
        id("EQT_INFY_EQ_NSE").shape(),
        Some(SymIdShape::Equity { symbol: "INFY", series: "EQ", exchange: "NSE" })
    );
    assert_eq!(
        id("FUT_NIFTY_FUT_NFO_28Nov2026").shape(),
        Some(SymIdShape::Future { symbol: "NIFTY", exchange: "NFO", expiry: "28Nov2026" })
    );
    assert_eq!(
        id("OPT_NIFTY_CE_NFO_5DEC26_24500.50").shape(),
        Some(SymIdShape::Option {
            symbol: "NIFTY",
            kind: OptionKind::Call,
            exchange: "NFO",
            expiry: "5DEC26",
            strike: Decimal::new(2_450_050, 2),
        })
    );
}

#[test]
fn a_symbol_may_hold_underscores_and_signs() {
    assert_eq!(
        id("EQT_A_B&C-D_EQ_BSE").shape(),
        Some(SymIdShape::Equity { symbol: "A_B&C-D", series: "EQ", exchange: "BSE" })
    );
}

#[test]
fn other_texts_are_kept_and_have_no_shape() {
    for text in [
        "eqt_INFY_EQ_NSE",
        "EQT",
        "EQT_INFY_NSE",
        "EQT__EQ_NSE",
        "EQT_INFY__NSE",
        "EQT_INFY_EQ_",
        "EQT_IN FY_EQ_NSE",
        "FUT_NIFTY_NFO_28Nov2026",
        "FUT_NIFTY_FUT_NFO_2026-11-28",
        "FUT_NIFTY_FUT_NFO_32Nov2026",
        "FUT_NIFTY_FUT_NFO_28-Nov2026",
        "FUT_NIFTY_FUT_NFO_28-11-2026",
        "FUT_NIFTY_FUT_NFO_-Nov-2026",
        "FUT_NIFTY_FUT_NFO_28Foo2026",
        "OPT_NIFTY_XX_NFO_28Nov2026_100",
        "OPT_NIFTY_CE_NFO_28Nov2026_abc",
        "OPT_NIFTY_CE_NFO_28Nov2026_-1",
        "12345",
        "é€",
        "FUT_X_FUT_NFO_1é26",
    ] {
        assert_eq!(id(text).shape(), None, "{text}");
        assert_eq!(id(text).as_str(), text);
    }
    assert_eq!("".parse::<SymId>(), Err(EmptySymId));
}

proptest! {
    #[test]
    fn parts_come_back_from_the_text_they_were_joined_to(
        symbol in "[A-Z][A-Z0-9&_-]{0,9}[A-Z0-9]", series in "[A-Z]{2}", exchange in "[A-Z]{3}", day in 1_u8..=31, strike in 1_u32..99_999,
    ) {
        let equity = id(&format!("EQT_{symbol}_{series}_{exchange}"));
        let parts = SymIdShape::Equity { symbol: &symbol, series: &series, exchange: &exchange };
        prop_assert_eq!(equity.shape(), Some(parts));
        let expiry = format!("{day}Nov2026");
        let option = id(&format!("OPT_{symbol}_PE_{exchange}_{expiry}_{strike}"));
        prop_assert_eq!(option.shape(), Some(SymIdShape::Option {
            symbol: &symbol, kind: OptionKind::Put, exchange: &exchange, expiry: &expiry, strike: strike.into(),
        }));
    }

    #[test]
    fn no_text_panics(text in "\\PC{1,40}") {
        if let Ok(id) = text.parse::<SymId>() { let _ = id.shape(); }
    }

    #[test]
    fn no_text_with_a_known_class_panics(text in "(EQT|FUT|OPT)_[A-Z0-9_é.]{0,30}") {
        let _ = id(&text).shape();
    }
}
