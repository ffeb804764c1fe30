/// Lets this process open as many files as its hard limit permits: each caller takes one, and each connection to the
/// service another. The usual limit of 1,024 is for programs with few.
pub(super) fn raise_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // With fewer files, callers wait until others have gone.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
