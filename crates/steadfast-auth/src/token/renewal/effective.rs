use std::fmt;

use super::{DailyAt, Renewal};

impl fmt::Display for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ahead in the background, {:?} ahead at the latest", self.advisory, self.mandatory)?;
        if let Some(daily) = self.daily {
            write!(f, ", daily at {daily}")?;
        }
        write!(f, "; stops after {} wrong logins", self.budget)
    }
}

impl fmt::Display for DailyAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute) = (self.minute_of_day / 60, self.minute_of_day % 60);
        let offset = self.utc_offset_minutes;
        write!(f, "{hour:02}:{minute:02} {:+03}:{:02}", offset / 60, (offset % 60).abs())
    }
}
