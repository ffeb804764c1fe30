mod bearer;
mod renewal;
mod source;
mod state;
mod status;

pub(crate) use self::source::{Admitted, Ended, Refused, TimeSample};
pub use self::{
    bearer::Token,
    renewal::{DailyAt, Renewal},
    source::{TokenSource, TokenSourceBuilder},
    status::{HumanNeeded, Status, TokenPhase},
};
