use steadfast_spec::{Form, OrderRequest};

/// Reads a form, and writes and reads it again.
///
/// # Panics
///
/// If the second reading differs from the first, if text is made up, or if an accepted order changes in its own
/// form.
pub fn form(data: &[u8]) {
    match Form::parse(data) {
        Ok(form) => {
            assert!(form.iter().all(|(key, _)| !key.is_empty()), "a field without a name");
            assert!(form.iter().count() <= data.iter().filter(|&&byte| byte == b'&').count() + 1);
            let encoded = form.encode();
            assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()), "{encoded:?}");
            assert_eq!(Form::parse(encoded.as_bytes()), Ok(form.clone()), "{encoded:?}");
            if let Some((key, value)) = form.iter().next() {
                assert_eq!(form.get(key), Some(value), "the first of a name is what counts");
            }
            order(&form);
        }
        Err(error) => assert!(error.position() <= data.len()),
    }
}

/// Checks that an accepted order is the same order when it is sent.
fn order(form: &Form) {
    if let Ok(order) = OrderRequest::from_fields(form.iter()) {
        let sent = order.form();
        let again = OrderRequest::from_fields(sent.iter());
        assert_eq!(again.as_ref(), Ok(&order), "{sent:?}");
        assert!(order.qty().is_sign_positive() && !order.qty().is_zero());
    }
}
