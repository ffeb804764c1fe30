use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use http::{Method, Request, Uri};
use percent_encoding::percent_decode_str;
use steadfast_spec::{AuthKind, Endpoint, Paths, Zone, has_dots, matches_template};

use crate::{Call, Class, Lane};

/// The properties of a request that follow from its method and path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The endpoint; `None` for a path that is not in the table.
    pub endpoint: Option<Endpoint>,
    /// The required content of the `Authorization` header.
    pub auth: AuthKind,
    /// The rule for repeats in doubt.
    pub class: Class,
    /// The zones that it falls under. Not empty: a request of no zone is refused.
    pub zones: Vec<Zone>,
    /// The lane that it waits in.
    pub lane: Lane,
    /// True for a path that is not in the table if it must be taken for one that places or changes an order, so that a
    /// halt stops it ([`Routes::guard_unknown`]).
    pub may_trade: bool,
}

impl Route {
    /// Returns the route of an endpoint according to the specification.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint: Some(endpoint),
            auth: endpoint.auth(),
            class: Class::of(endpoint),
            zones: endpoint.zones().to_vec(),
            lane: Lane::of(endpoint),
            may_trade: false,
        }
    }

    /// True if a refusal as not executed (401, 429) cannot be checked, so that the request is not sent again after one:
    /// its effect is unknown, and no list shows it.
    ///
    /// Special kinds of orders, exits and conversions are like that, and so is a path that is not in the table, because
    /// it may be one of them. Requests of §4.1 may be sent again: for an order the list is checked first, a change made twice is
    /// the same change, and a code that was exchanged is refused.
    #[must_use]
    pub fn is_unverifiable(&self) -> bool {
        self.class == Class::OnlyIfNotExecuted && self.endpoint.is_none_or(Endpoint::is_special)
    }

    /// Returns the route of a path that is not in the table: the strictest zone, and no repeats unless it only reads.
    #[must_use]
    pub fn unknown(method: &Method) -> Self {
        Self {
            endpoint: None,
            auth: AuthKind::Full,
            class: if method == Method::GET || method == Method::HEAD {
                Class::Safe
            } else {
                Class::OnlyIfNotExecuted
            },
            zones: vec![Zone::GENERAL],
            lane: Lane::Normal,
            may_trade: false,
        }
    }

    /// Returns the same for requests of which their sender knows nothing but what he was asked to pass on: never
    /// repeated once it has left, not even a GET. A DELETE may be a cancel, so it leaves ahead of others, and a halt does
    /// not stop it; all but GETs may trade.
    #[must_use]
    pub fn guarded(method: &Method) -> Self {
        let (is_read, is_cancel) =
            (method == Method::GET || method == Method::HEAD, method == Method::DELETE);
        Self {
            class: Class::OnlyIfNotExecuted,
            lane: if is_cancel { Lane::Critical } else { Lane::Normal },
            may_trade: !is_read && !is_cancel,
            ..Self::unknown(method)
        }
    }
}

/// The table from method and path to [`Route`], which users may extend and override.
#[derive(Clone, Debug)]
pub struct Routes {
    entries: Vec<(String, Arc<Route>, Method)>,
    guards_unknown: bool,
}

impl Routes {
    /// Creates the table of §4.1, with `paths` for the endpoints whose paths are not shown.
    #[must_use]
    pub fn new(paths: &Paths) -> Self {
        let entries = Endpoint::all()
            .filter_map(|endpoint| {
                paths
                    .of(endpoint)
                    .map(|path| (path.to_owned(), Arc::new(Route::new(endpoint)), endpoint.method()))
            })
            .collect();
        Self { entries, guards_unknown: false }
    }

    /// Takes requests to paths that are not in the table for [guarded](Route::guarded) ones, and not for
    /// [unknown](Route::unknown) ones.
    ///
    /// For a program that passes on requests of others. A program's own request to a path of its choice is understood
    /// by its method.
    #[must_use]
    pub fn guard_unknown(mut self) -> Self {
        self.guards_unknown = true;
        self
    }

    /// Returns the route of a request whose path is not in the table.
    #[must_use]
    pub fn unknown(&self, method: &Method) -> Route {
        if self.guards_unknown { Route::guarded(method) } else { Route::unknown(method) }
    }

    /// Returns the route of a request, for layers whose stack may have no route layer.
    ///
    /// It is the one in the request's extensions, borrowed. Without one, the default table is searched for the method
    /// and for every tail of the path, because the base address is not known here. A request that is not found has the
    /// [unknown](Route::unknown) route.
    ///
    /// # Example
    ///
    /// ```
    /// use http::Request;
    /// use steadfast_call::Routes;
    /// use steadfast_spec::Endpoint;
    ///
    /// let request = Request::get("https://api.example/tradeapi/v2/api/oms/orders").body(())?;
    /// assert_eq!(Routes::of(&request).endpoint, Some(Endpoint::Orders));
    /// # Ok::<(), http::Error>(())
    /// ```
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Cow<'_, Arc<Route>> {
        Self::or_shown(Call::of(request.extensions()).route(), request.method(), request.uri())
    }

    /// The same for a caller that has already looked into the extensions and found `known`.
    #[must_use]
    pub fn or_shown<'a>(known: Option<&'a Arc<Route>>, method: &Method, uri: &Uri) -> Cow<'a, Arc<Route>> {
        static DEFAULT: LazyLock<Routes> = LazyLock::new(Routes::default);
        if let Some(route) = known {
            return Cow::Borrowed(route);
        }
        let path = uri.path();
        path.match_indices('/')
            .find_map(|(start, _)| DEFAULT.find(method, &path[start..]))
            .map_or_else(|| Cow::Owned(Arc::new(Route::unknown(method))), Cow::Borrowed)
    }

    /// Adds or replaces the route of one method and path template; a `{name}` segment matches any one segment.
    #[must_use]
    pub fn with(mut self, method: Method, template: impl Into<String>, route: Route) -> Self {
        let template = template.into();
        self.entries.retain(|(t, _, m)| !(*t == template && *m == method));
        self.entries.push((template, Arc::new(route), method));
        self
    }

    /// Applies `change` to the route of `endpoint`; an endpoint without a path is left alone.
    #[must_use]
    pub fn override_endpoint(mut self, endpoint: Endpoint, change: impl Fn(&mut Route)) -> Self {
        for (_, route, _) in self.entries.iter_mut().filter(|(_, r, _)| r.endpoint == Some(endpoint)) {
            change(Arc::make_mut(route));
        }
        self
    }

    /// Finds the route of a request by its method and its path below the base address.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<&Arc<Route>> {
        self.entries
            .iter()
            .find(|(t, _, m)| m == method && matches_template(t, path))
            .map(|(_, route, _)| route)
    }

    /// True if a path is not in the table, but would be for a lenient server: one that decodes escapes, ignores case,
    /// drops slashes and parameters, or resolves dots; for a POST, which may be an order, also one that ignores blanks,
    /// hyphens and endings such as `.json`.
    #[must_use]
    pub fn is_misspelled(&self, method: &Method, path: &str) -> bool {
        let given = percent_decode_str(path).decode_utf8_lossy();
        if has_dots(&given) {
            return true;
        }
        let mut templates = self.entries.iter().map(|(template, ..)| template.as_str());
        self.template(path).is_none() && templates.any(|template| is_tidied_to(template, &given, method))
    }

    /// Returns the template of the path in the table, for any method. Use it in labels of metrics, never the raw path.
    #[must_use]
    pub fn template(&self, path: &str) -> Option<&str> {
        self.entries.iter().find(|(t, ..)| matches_template(t, path)).map(|(t, ..)| t.as_str())
    }

    /// Returns the methods, templates and routes of an endpoint.
    pub fn of_endpoint(&self, endpoint: Endpoint) -> impl Iterator<Item = (&Method, &str, &Route)> {
        self.iter().filter(move |(.., route)| route.endpoint == Some(endpoint))
    }

    /// Returns all methods, templates and routes of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&Method, &str, &Route)> {
        self.entries.iter().map(|(template, route, method)| (method, template.as_str(), &**route))
    }

    /// Returns the methods that the table knows for a path.
    pub fn methods<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Method> + 'a {
        self.entries.iter().filter(move |(t, ..)| matches_template(t, path)).map(|(_, _, m)| m)
    }
}

impl Default for Routes {
    fn default() -> Self {
        Self::new(&Paths::default())
    }
}

fn is_tidied_to(template: &str, path: &str, method: &Method) -> bool {
    let tidied = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default().to_lowercase();
        if *method != Method::POST {
            return name;
        }
        name.split('.').next().unwrap_or_default().chars().filter(|c| c.is_alphanumeric()).collect()
    };
    let segments = |path: &str| -> Vec<String> {
        path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
    };
    let (wanted, given) = (segments(template), segments(path));
    wanted.len() == given.len()
        && wanted
            .iter()
            .zip(&given)
            .all(|(wanted, given)| wanted.starts_with('{') || tidied(wanted) == tidied(given))
}

#[cfg(test)]
mod tests;
