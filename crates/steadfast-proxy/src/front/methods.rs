use std::fmt;

use http::Method;

/// The methods that a request may have.
const ALL: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH];

/// The methods that a path has, as the header `Allow` names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Methods([bool; ALL.len()]);

impl<'a> FromIterator<&'a Method> for Methods {
    fn from_iter<I: IntoIterator<Item = &'a Method>>(methods: I) -> Self {
        let mut found = Self::default();
        for method in methods {
            ALL.iter()
                .zip(&mut found.0)
                .filter(|(known, _)| *known == method)
                .for_each(|(_, has)| *has = true);
        }
        found
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ALL.iter().zip(self.0).filter(|(_, has)| *has).map(|(method, _)| method.as_str());
        f.write_str(&names.collect::<Vec<_>>().join(", "))
    }
}
