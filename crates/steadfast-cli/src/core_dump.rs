use crate::exit::Failed;

/// Keeps the process's memory, which holds secrets, out of core dumps.
///
/// A limit of zero stops the kernel from writing a file. A program to which the kernel pipes dumps gets them regardless
/// of the limit, so the process is also marked not dumpable. Does nothing on systems without either.
pub(crate) fn forbid() -> Result<(), Failed> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).map_err(Failed::error)?;
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Failed::error)?;
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};

    #[test]
    fn a_process_that_forbids_it_leaves_no_core() {
        super::forbid().unwrap();
        let limit = getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
