use std::{error::Error, fmt, str::FromStr};

use super::Fault;

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let known = Self::ALL.iter().copied().find(|fault| fault.as_str() == name);
        known.ok_or_else(|| UnknownFault { name: name.chars().take(80).collect() })
    }
}

/// A name that is not a fault's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault {
    name: String,
}

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no fault is named {:?}", self.name)?;
        let group = self.name.split('.').next().unwrap_or_default();
        let near: Vec<_> =
            Fault::ALL.iter().filter(|fault| fault.group() == group).map(|fault| fault.as_str()).collect();
        if near.is_empty() {
            let mut groups: Vec<_> = Fault::ALL.iter().map(|fault| fault.group()).collect();
            groups.dedup();
            write!(f, "; the groups are {}", groups.join(", "))
        } else {
            write!(f, "; there are {}", near.join(", "))
        }
    }
}

impl Error for UnknownFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_ones_of_its_group() {
        let error = "list.nonsense".parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains("list.empty") && !error.contains("placement"), "{error}");
        assert!("x".parse::<Fault>().unwrap_err().to_string().contains("the groups are"));
    }
}
