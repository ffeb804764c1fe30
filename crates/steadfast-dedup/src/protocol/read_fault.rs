/// Why a read of the order list is no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadFault {
    /// It failed, or was answered with a status that may be temporary.
    Failed,
    /// It is not allowed.
    Forbidden,
    /// The list is longer than the limit for lists in memory.
    TooLong,
    /// Not every record could be understood.
    Unreadable,
}
