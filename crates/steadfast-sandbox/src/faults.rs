mod fault;

pub(crate) use self::fault::Stage;
pub use self::fault::{CatalogueRow, Cover, Fault, Place, Seen, UnknownFault, catalogue};
