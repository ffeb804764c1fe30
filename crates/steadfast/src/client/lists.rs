use http::StatusCode;
use steadfast_call::{Outcome, Resend};
use steadfast_spec::{Endpoint, Form, Operation, OrderRecord, OrderRequest, parse_order_list};

use super::{Client, Record, Records};
use crate::error::Error;

/// Reading lists, margins and the scrip master.
impl Client {
    /// Returns the session's orders (§4.5); an empty list if there are none.
    ///
    /// # Errors
    ///
    /// [`Error`] if the list cannot be read whole by the deadline.
    pub async fn orders(&self) -> Result<Vec<OrderRecord>, Error> {
        let Some(body) = self.read(&Operation::orders()).await? else { return Ok(Vec::new()) };
        parse_order_list(&body, self.tracker.settings().record_names())
            .map_err(|error| Error::unexpected(Outcome::Unknown { resend: Resend::Never }, error))
    }

    /// Returns the order history (§4.5), each record as the service wrote it; an empty list if there is none.
    ///
    /// # Errors
    ///
    /// [`Error`] if it cannot be read whole by the deadline.
    pub async fn history(&self) -> Result<Vec<Record>, Error> {
        let Some(body) = self.read(&Operation::new(Endpoint::History)).await? else { return Ok(Vec::new()) };
        Record::payloads_of(&body)
            .map_err(|error| Error::unexpected(Outcome::Unknown { resend: Resend::Never }, error).safe(true))
    }

    /// Returns the margin that one order needs. Path, payload and answer are "not shown" (§4.5): the order's own fields
    /// are sent, and the answer is returned as it came.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if [`Paths`](crate::Paths) gives it no path, and
    /// [`Error`] if the answer is not a success.
    pub async fn order_margin(&self, order: &OrderRequest) -> Result<Record, Error> {
        self.record(&Operation::new(Endpoint::OrderMargin).form(order.form())).await
    }

    /// Returns the margin that several orders need together (§4.5). The payload is "not shown", so the caller gives the
    /// form.
    ///
    /// # Errors
    ///
    /// [`Error`] if the answer is not a success.
    pub async fn basket_margin(&self, form: Form) -> Result<Record, Error> {
        self.record(&Operation::new(Endpoint::BasketMargin).form(form)).await
    }

    /// Returns the instruments of a group (§4.1), one at a time while the answer arrives.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is no list. A list that breaks off later is an error of the stream.
    pub async fn symbols(&self, scrip_group: &str) -> Result<Records, Error> {
        self.records(&Operation::symbols(scrip_group)).await
    }

    /// Returns all instruments (§4.1), one at a time while the answer arrives, because the list is long.
    ///
    /// The payload is "not shown"; an array of records is expected. Another form, such as CSV, is an error: use
    /// [`raw`](Self::raw) with [`request`](Self::request), which returns it as it arrives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`](crate::ErrorKind::InvalidRequest) if [`Paths`](crate::Paths) gives it no path, and
    /// [`Error`] if there is no list. A list that breaks off later is an error of the stream.
    pub async fn scrip_master(&self) -> Result<Records, Error> {
        self.records(&Operation::new(Endpoint::ScripMaster)).await
    }

    /// Prepares for the first order: obtains a token, opens a connection and reads the order list once.
    ///
    /// # Errors
    ///
    /// [`Error`] if any of that fails; an order would fail as well.
    pub async fn prewarm(&self) -> Result<(), Error> {
        self.orders().await.map(drop)
    }

    async fn record(&self, operation: &Operation) -> Result<Record, Error> {
        let unknown = Outcome::Unknown { resend: Resend::Never };
        match self.read(operation).await? {
            Some(body) => Record::payload_of(&body).map_err(|error| Error::unexpected(unknown, error)),
            None => Err(Error::new(crate::ErrorKind::UnexpectedAnswer, unknown)),
        }
    }

    async fn records(&self, operation: &Operation) -> Result<Records, Error> {
        let until = self.until();
        let response = self.raw(self.request(operation)?).await.map_err(|error| error.safe(true))?;
        if response.status() == StatusCode::OK {
            return Ok(Records::new(response, self.tokens.clone()));
        }
        let (parts, body) = self.collect(response, until).await?;
        Err(Error::of_answer(&parts, self.text_of(&body)).safe(true))
    }
}
