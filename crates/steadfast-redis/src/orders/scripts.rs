/// One of the scripts about the owner of an account's orders.
///
/// Its text names the run of the server that it is sent to, so the server can tell that it is another one than before.
/// None reads a clock: each process watches leases by its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct OrdersScript {
    source: &'static str,
}

/// Takes in what a process knows of the kill switch. It stands before scripts that are told.
const LEARN: &str = include_str!("../script/orders/learn.lua");

impl OrdersScript {
    /// Takes the orders, or tells who owns them.
    pub const TAKE: Self = Self { source: include_str!("../script/orders/take.lua") };

    /// Renews the lease.
    pub const RENEW: Self = Self { source: include_str!("../script/orders/renew.lua") };

    /// Appends entries to the journal.
    pub const APPEND: Self = Self { source: include_str!("../script/orders/append.lua") };

    /// Gives the orders back.
    pub const RELEASE: Self = Self { source: include_str!("../script/orders/release.lua") };

    /// Turns the kill switch, or tells how it is.
    pub const HALT: Self = Self { source: include_str!("../script/orders/halt.lua") };

    /// Takes the journal as it is.
    pub const ACCEPT: Self = Self { source: include_str!("../script/orders/accept.lua") };

    /// Returns the text for one run of a server.
    #[must_use]
    pub fn text(self, run: &str) -> String {
        let own = self.source.replace("{run_id}", run);
        if matches!(self, Self::TAKE | Self::RENEW | Self::HALT) { format!("{LEARN}{own}") } else { own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_are_short_and_read_no_clock() {
        let all = [
            OrdersScript::TAKE,
            OrdersScript::RENEW,
            OrdersScript::APPEND,
            OrdersScript::RELEASE,
            OrdersScript::HALT,
            OrdersScript::ACCEPT,
        ];
        for script in all {
            let text = script.text("8f3a");
            assert!(
                text.lines().count() <= 60 && !text.contains("TIME") && !text.contains("run_id"),
                "{text}"
            );
        }
    }
}
