//! Decides whether two orders are equal.

use steadfast::{Decimal, spec::OrderRequest};

/// Returns the same text for all forms that ask for the same order: the terms by which the search for a lost order
/// compares, in one spelling. Other fields, and a price that does not apply to the order's type, are no part of it: a
/// repeat must not pass for another order because of a remark.
pub(super) fn terms(order: &OrderRequest) -> String {
    let kind = order.order_type();
    let spelled = |number: Decimal| number.normalize().to_string();
    let applying = |price: Option<Decimal>, applies: bool| price.filter(|_| applies).map(spelled);
    [
        order.side().as_str(),
        kind.as_str(),
        order.product().as_str(),
        order.validity().as_str(),
        &spelled(order.qty()),
        &applying(order.limit_price(), kind.needs_limit_price()).unwrap_or_default(),
        &applying(order.trig_price(), kind.needs_trig_price()).unwrap_or_default(),
        // The last, because any character may be in it.
        order.sym_id().folded().as_str(),
    ]
    .join(" ")
}

#[cfg(test)]
mod tests {
    use steadfast::spec::Form;

    use super::*;

    const FORM: &str = "symId=S&qty=10&side=buy&type=limit&limitPrice=100&product=delivery&validity=day";

    #[test]
    fn equal_orders_have_one_text_however_they_are_written() {
        let text = |form: &str| {
            terms(&OrderRequest::from_fields(Form::parse(form.as_bytes()).unwrap().iter()).unwrap())
        };
        let stop = FORM.replace("type=limit", "type=stoplimit") + "&trigPrice=99";
        let market = FORM.replace("type=limit&limitPrice=100", "type=market");
        for (order, equals) in [
            (
                FORM,
                vec![
                    FORM.replace("qty=10", "qty=10.0"),
                    FORM.replace("limitPrice=100", "limitPrice=100.00"),
                    FORM.replace("limitPrice=100", "limitPrice=1e2"),
                    FORM.replace("symId=S&", "") + "&symId=%53",
                    FORM.replace("symId=S", "symId=s"),
                    FORM.to_owned() + "&trigPrice=",
                    FORM.to_owned() + "&trigPrice=0",
                    FORM.to_owned() + "&trigPrice=99&disclosedQty=0&remarks=x&foo=1",
                ],
            ),
            (&stop, vec![stop.replace("=99", "=99.0")]),
            (&market, vec![market.clone() + "&limitPrice=0&trigPrice=0"]),
        ] {
            for equal in equals {
                assert_eq!(text(&equal), text(order), "{equal}");
            }
        }
        for other in [
            FORM.replace("symId=S", "symId=T"),
            FORM.replace("qty=10", "qty=11"),
            FORM.replace("buy", "sell"),
            FORM.replace("type=limit", "type=stoplimit") + "&trigPrice=98",
            FORM.replace("=100", "=100.5"),
            FORM.replace("delivery", "intraday"),
            FORM.replace("day", "ioc"),
            market,
            stop.clone(),
        ] {
            assert_ne!(text(&other), text(FORM), "{other}");
            assert!(other == stop || text(&other) != text(&stop), "{other}");
        }
    }
}
