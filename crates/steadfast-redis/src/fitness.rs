use crate::error::Unfit;

/// The facts of a server's `INFO`. Managed stores forbid `CONFIG`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info<'a>(pub(crate) &'a str);

impl<'a> Info<'a> {
    /// Returns the name of the server's run.
    pub(crate) fn run(self) -> Option<&'a str> {
        self.get("run_id")
    }

    /// Returns the server's name and version.
    pub(crate) fn version(self) -> String {
        match self.get("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", self.get("redis_version").unwrap_or("unknown")),
        }
    }

    /// True if what it is told outlives a restart, but for the last second.
    pub(crate) fn persists(self) -> bool {
        self.get("aof_enabled") == Some("1") && self.get("aof_last_write_status") == Some("ok")
    }

    /// Finds the first reason why the server cannot keep a quota. `is_watched` if sentinels may put a replica in its place.
    pub(crate) fn check(self, is_watched: bool) -> Result<(), Unfit> {
        let version = self.get("valkey_version").or_else(|| self.get("redis_version")).unwrap_or("unknown");
        // Valkey calls itself Redis 7.2.4, whatever its own version is.
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_none_or(|major| major < 7) {
            return Err(Unfit::TooOld { version: version.to_owned() });
        }
        match self.get("maxmemory_policy") {
            None | Some("noeviction") => {}
            Some(policy) => return Err(Unfit::Evicts { policy: policy.to_owned() }),
        }
        if self.get("role") != Some("master") {
            return Err(Unfit::IsReplica);
        }
        let replicas = self.get("connected_slaves").is_some_and(|count| count != "0");
        if (replicas || is_watched) && !self.needs_replicas() {
            return Err(Unfit::ForgetsAtPromotion);
        }
        Ok(())
    }

    /// True if it writes only with replicas. This is shown only where `min-replicas-to-write` and `min-replicas-max-lag` are set.
    pub(crate) fn needs_replicas(self) -> bool {
        self.get("min_slaves_good_slaves").is_some()
    }

    fn get(self, field: &str) -> Option<&'a str> {
        self.0.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIT: &str = "redis_version:7.0.15\r\nrun_id:8f3a\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n\
                       connected_slaves:0\r\n";

    fn check(old: &str, new: &str) -> Result<(), Unfit> {
        Info(&FIT.replace(old, new)).check(false)
    }

    #[test]
    fn a_server_is_named_and_persists_if_it_writes_all_down() {
        assert_eq!(Info(FIT).version(), "Redis 7.0.15");
        assert!(!Info(FIT).persists() && !Info("aof_enabled:1\naof_last_write_status:err\n").persists());
        let valkey =
            Info("redis_version:7.2.4\nvalkey_version:8.0.1\naof_enabled:1\naof_last_write_status:ok\n");
        assert_eq!((&*valkey.version(), valkey.persists()), ("Valkey 8.0.1", true));
    }

    #[test]
    fn a_server_that_may_forget_is_refused_by_the_reason() {
        assert_eq!(Info(FIT).run(), Some("8f3a"));
        assert_eq!(Info(FIT).check(false), Ok(()));
        assert_eq!(Info(FIT).check(true), Err(Unfit::ForgetsAtPromotion), "a replica may come");
        assert_eq!(check("7.0.15", "6.2.7"), Err(Unfit::TooOld { version: "6.2.7".to_owned() }));
        assert_eq!(
            check("noeviction", "allkeys-lru"),
            Err(Unfit::Evicts { policy: "allkeys-lru".to_owned() })
        );
        assert_eq!(check("role:master", "role:slave"), Err(Unfit::IsReplica));
        assert_eq!(check("slaves:0", "slaves:1"), Err(Unfit::ForgetsAtPromotion));
        assert_eq!(check("slaves:0", "slaves:1\r\nmin_slaves_good_slaves:1"), Ok(()));
    }
}
