use steadfast_spec::{AssetClass, OrderType, Product, Side, Validity};

use super::*;

const HEADER: &str = "symId,qty,side,type,product,validity,limitPrice,trigPrice\n";

fn read(rows: &[u8]) -> Vec<Result<Row, BadRow>> {
    Rows::new([HEADER.as_bytes(), rows].concat()).unwrap().collect()
}

fn errors(row: &str) -> Vec<String> {
    match read(row.as_bytes()).remove(0) {
        Ok(row) => panic!("{row:?}"),
        Err(bad) => bad.errors.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn c08_every_wrong_field_is_named_by_line_and_column() {
    for (row, named) in [
        ("INFY,1,buy,market,intraday,day,,", "line 2, column 1: symId has none of the shapes"),
        (",1,buy,market,intraday,day,,", "line 2, column 1: symId is required"),
        (
            "EQT_IN\u{7}FY_EQ_NSE,1,buy,market,intraday,day,,",
            "line 2, column 1: symId holds a control character",
        ),
        (
            &*format!("EQT_{}_EQ_NSE,1,buy,market,intraday,day,,", "X".repeat(70_000)),
            "line 2, column 1: symId has 70011 characters",
        ),
        ("EQT_INFY_EQ_NSE,ten,buy,market,intraday,day,,", "line 2, column 2: qty is not a decimal"),
        ("EQT_INFY_EQ_NSE,0,buy,market,intraday,day,,", "line 2, column 2: qty"),
        ("EQT_INFY_EQ_NSE,-5,buy,market,intraday,day,,", "line 2, column 2: qty"),
        ("EQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,", "line 2, column 3: side is not one of buy, sell"),
        ("EQT_INFY_EQ_NSE,1,buy,mkt,intraday,day,,", "line 2, column 4: type is not one of"),
        ("EQT_INFY_EQ_NSE,1,buy,market,cnc,day,,", "line 2, column 5: product is not one of"),
        ("EQT_INFY_EQ_NSE,1,buy,market,intraday,DAY,,", "line 2, column 6: validity is not one of"),
        ("EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,,", "line 2, column 7: limitPrice is required"),
        ("EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,x,", "line 2, column 7: limitPrice is not a decimal"),
        ("EQT_INFY_EQ_NSE,1,buy,stopmarket,intraday,day,,", "line 2, column 8: trigPrice is required"),
        ("EQT_INFY_EQ_NSE,1e3,buy,market,intraday,day,,", "line 2, column 2: qty has an exponent"),
        ("EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,1.5E2,", "line 2, column 7: limitPrice has an exponent"),
        (
            "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,1500,",
            "line 2, column 7: limitPrice is no part of an order of type market",
        ),
        (
            "EQT_INFY_EQ_NSE,1,buy,limit,intraday,day,1500,1400",
            "line 2, column 8: trigPrice is no part of an order of type limit",
        ),
        ("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,", "line 2: row has 7 fields instead of 8"),
    ] {
        let errors = errors(row);
        assert!(errors.len() == 1 && errors[0].starts_with(named), "{row}: {errors:?}");
    }
}

#[test]
fn all_wrong_fields_of_a_row_are_named_at_once() {
    let errors = errors("x,0,up,stoplimit,cnc,DAY,,-1");
    let columns: Vec<&str> = errors.iter().map(|error| error.split(':').next().unwrap()).collect();
    let expected: Vec<String> =
        [1, 2, 3, 5, 6, 7, 8].iter().map(|column| format!("line 2, column {column}")).collect();
    assert_eq!(columns, expected, "{errors:?}");
}

#[test]
fn a_bad_row_does_not_end_the_file_and_lines_are_those_of_an_editor() {
    let rows = b"EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n\
        \n\
        \"EQT_TCS_EQ_NSE\",\"1\",\"sell\",\"limit\",\"delivery\",\"gtc\",\"3,400\",\n\
        EQT_\xff_EQ_NSE,1,buy,market,intraday,day,,\r\n\
        EQT_ITC_EQ_BSE,2,sell,stoplimit,delivery,eos,430.05,431\r\n";
    let rows = read(rows);
    let lines: Vec<(u64, bool)> = rows
        .iter()
        .map(|row| match row {
            Ok(row) => (row.line, true),
            Err(bad) => (bad.line, false),
        })
        .collect();
    assert_eq!(lines, [(2, true), (4, false), (5, false), (6, true)]);
    let Err(bad) = &rows[2] else { panic!("bytes that are no text") };
    assert_eq!(bad.errors[0].to_string(), "line 5, column 1: symId is not utf-8");
}

#[test]
fn columns_may_stand_in_any_order_but_must_all_be_there() {
    let file = "\u{feff}side,symId,qty,type,product,validity,trigPrice,limitPrice\nup,EQT_INFY_EQ_NSE,1,market,intraday,day,,\n";
    let Err(bad) = Rows::new(file.as_bytes()).unwrap().next().unwrap() else { panic!("side is wrong") };
    assert_eq!(bad.errors[0].column, Some(1));
    for (header, named) in [
        ("", "line 1: header lacks the column symId"),
        ("symId,qty", "line 1: header lacks the column side"),
        ("symId,Qty", "line 1, column 2: \"Qty\" is none of"),
        ("symId,symId", "line 1, column 2: symId is there twice"),
        ("symId;qty;side", "line 1: columns are separated by ';' instead of a comma"),
        ("\u{feff}symId\tqty", "line 1: columns are separated by '\\t' instead of a comma"),
    ] {
        let Err(error) = Rows::new(header.as_bytes()) else { panic!("{header}") };
        assert!(error.to_string().starts_with(named), "{error}");
    }
}

#[test]
fn the_example_files_are_whole_and_hold_every_code() {
    for (file, least) in [
        (&include_bytes!("../../../../../examples/data/orders.csv")[..], 1_000),
        (&include_bytes!("../../../../../examples/data/orders-40.csv")[..], 40),
    ] {
        let rows: Vec<Row> = Rows::new(file).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(rows.len() >= least, "{}", rows.len());
        assert!(rows.iter().all(|row| !row.order.is_eos_outside_bse()));
        let has = |is: &dyn Fn(&OrderRequest) -> bool| rows.iter().any(|row| is(&row.order));
        assert!(OrderType::ALL.iter().all(|code| has(&|order| order.order_type() == *code)));
        assert!(Product::ALL.iter().all(|code| has(&|order| order.product() == *code)));
        assert!(Validity::ALL.iter().all(|code| has(&|order| order.validity() == *code)));
        assert!(Side::ALL.iter().all(|code| has(&|order| order.side() == *code)));
        let classes = [AssetClass::Equity, AssetClass::Future, AssetClass::Option];
        assert!(classes.iter().all(|class| has(&|order| order.sym_id().asset_class() == Some(*class))));
    }
}

#[test]
fn an_unclosed_quote_is_one_bad_row_and_no_order() {
    let rows =
        read(b"\"EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\nEQT_TCS_EQ_NSE,1,buy,market,intraday,day,,\n");
    let [Err(bad)] = rows.as_slice() else { panic!("{rows:?}") };
    let named = "line 2: row has 1 field instead of 8; it ends on line 3, as if a quote were not closed";
    assert_eq!(bad.errors[0].to_string(), named);
}

/// Rows on the same line had the same name: the second was reported as placed but was not.
#[test]
fn rows_that_a_cr_alone_parts_are_on_lines_of_their_own() {
    let row = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,";
    for (file, lines) in [
        (format!("{}\r{row}\r{row}\r\r{row}\r", HEADER.trim()), [2, 3, 5]),
        (format!("{HEADER}{row}\r{row}\n{row}\r\n"), [2, 3, 4]),
        (format!("{HEADER}{row}\r\n\r\n{row}\r\n{row}"), [2, 4, 5]),
    ] {
        let rows: Vec<Row> = Rows::new(file.clone()).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), lines, "{file:?}");
    }
}
