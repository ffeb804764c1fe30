use steadfast_call::{Outcome, Resend};
use steadfast_spec::{Endpoint, Funds, Holding, Operation, OrderHistory, Position, Trade, UnreadableRecord};

use super::Client;
use crate::error::{Error, ErrorKind};

/// Reads of the account.
///
/// The specification shows little of these records (§4.5): the names of their fields are those of public documentation.
/// Where an answer has others, the error names what is missing, and [`call`](Self::call) returns it as it is.
impl Client {
    /// Returns the account's positions; an empty list if there are none.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast::{Access, Client, OrderRequest, Paths};
    /// use steadfast_sandbox::Sandbox;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = Sandbox::builder().build()?;
    /// let facts = sandbox.credentials();
    /// let access = Access::token(facts.api_key, facts.access_token)?;
    /// let client = Client::builder(facts.base_url.parse()?, access)
    ///     .paths(Paths::public())
    ///     .build_over(sandbox.gateway())?;
    /// # let fields = [("symId", "EQT_INFY_EQ_NSE"), ("qty", "10"), ("side", "sell"), ("type", "market")];
    /// # let others = [("product", "intraday"), ("validity", "day")];
    /// # let order = OrderRequest::from_fields(fields.into_iter().chain(others))?;
    /// client.place_order(&order).await?; // sells 10 at the market
    /// let positions = client.positions().await?;
    /// assert_eq!(positions[0].qty, (-10).into());
    ///
    /// let funds = client.funds().await?;
    /// assert!(funds.margin_used > Some(0.into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if [`Paths`](crate::Paths) gives it no path;
    /// [`ErrorKind::UnexpectedAnswer`](crate::ErrorKind::UnexpectedAnswer) if a record cannot be read, with an
    /// [`UnreadableRecord`] as its source that names record and field; and [`Error`] if the answer is not a success.
    pub async fn positions(&self) -> Result<Vec<Position>, Error> {
        self.list(&Operation::new(Endpoint::Positions), Position::parse_list).await
    }

    /// Returns what the account owns since earlier days; an empty list if there is nothing.
    ///
    /// # Errors
    ///
    /// As [`positions`](Self::positions).
    pub async fn holdings(&self) -> Result<Vec<Holding>, Error> {
        self.list(&Operation::new(Endpoint::Holdings), Holding::parse_list).await
    }

    /// Returns the fills of the account's orders; an empty list if there are none.
    ///
    /// # Errors
    ///
    /// As [`positions`](Self::positions).
    pub async fn trades(&self) -> Result<Vec<Trade>, Error> {
        self.list(&Operation::new(Endpoint::Trades), Trade::parse_list).await
    }

    /// Returns what the account has to trade with.
    ///
    /// # Errors
    ///
    /// As [`positions`](Self::positions).
    pub async fn funds(&self) -> Result<Funds, Error> {
        match self.read(&Operation::new(Endpoint::Funds)).await? {
            Some(body) => Funds::parse(&body).map_err(unreadable),
            None => Err(Error::new(ErrorKind::UnexpectedAnswer, UNKNOWN).safe(true)),
        }
    }

    /// Returns what became of the account's orders (§4.5); an empty list if there are none.
    ///
    /// A service may want to know which order: see [`history_of`](Self::history_of).
    ///
    /// # Errors
    ///
    /// As [`positions`](Self::positions).
    pub async fn history(&self) -> Result<Vec<OrderHistory>, Error> {
        self.list(&Operation::new(Endpoint::History), OrderHistory::parse_list).await
    }

    /// Returns what became of one order; `None` if the service knows no such order. The parameter `orderId` is from public
    /// documentation; a service that passes over it answers with all orders, and the one is picked from them.
    ///
    /// # Errors
    ///
    /// As [`positions`](Self::positions).
    pub async fn history_of(&self, order_id: &str) -> Result<Option<OrderHistory>, Error> {
        let operation = Operation::new(Endpoint::History).query("orderId", order_id);
        let orders = self.list(&operation, OrderHistory::parse_list).await?;
        Ok(orders.into_iter().find(|order| order.order_id == order_id))
    }

    async fn list<T>(
        &self,
        operation: &Operation,
        parse: fn(&[u8]) -> Result<Vec<T>, UnreadableRecord>,
    ) -> Result<Vec<T>, Error> {
        let Some(body) = self.read(operation).await? else { return Ok(Vec::new()) };
        parse(&body).map_err(unreadable)
    }
}

const UNKNOWN: Outcome = Outcome::Unknown { resend: Resend::Never };

fn unreadable(error: UnreadableRecord) -> Error {
    Error::unexpected(UNKNOWN, error).safe(true)
}
