use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use pin_project_lite::pin_project;
use tower_service::Service;

/// The addresses of `localhost`, whatever a resolver says: tokens go in clear text to this machine only.
const LOCALHOST: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Looks names up: `localhost` by itself, all others by the machine's resolver.
#[derive(Clone, Debug)]
pub(super) struct Resolver<R = GaiResolver>(R);

impl Default for Resolver {
    fn default() -> Self {
        Self(GaiResolver::new())
    }
}

impl<R> Service<Name> for Resolver<R>
where
    R: Service<Name, Error = io::Error>,
    R::Response: Iterator<Item = SocketAddr>,
{
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = LookingUp<R::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> LookingUp<R::Future> {
        let host = name.as_str();
        let is_local = host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost");
        if is_local {
            return LookingUp::Known;
        }
        LookingUp::Asked { future: self.0.call(name) }
    }
}

pin_project! {
    /// The future of a [`Resolver`].
    #[project = Project]
    pub(super) enum LookingUp<F> {
        Known,
        Asked { #[pin] future: F },
    }
}

impl<F, A> Future for LookingUp<F>
where
    F: Future<Output = io::Result<A>>,
    A: Iterator<Item = SocketAddr>,
{
    type Output = io::Result<vec::IntoIter<SocketAddr>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let found: Vec<_> = match self.project() {
            // The connector sets the port.
            Project::Known => LOCALHOST.map(|address| SocketAddr::new(address, 0)).into(),
            Project::Asked { future } => ready!(future.poll(cx))?.collect(),
        };
        Poll::Ready(Ok(found.into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use super::*;

    const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)), 0);

    /// A resolver that returns the address of another machine for every name.
    #[derive(Clone)]
    struct Lying;

    impl Service<Name> for Lying {
        type Response = vec::IntoIter<SocketAddr>;
        type Error = io::Error;
        type Future = Ready<io::Result<Self::Response>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Name) -> Self::Future {
            ready(Ok(vec![ELSEWHERE].into_iter()))
        }
    }

    // Guards against a resolver or hosts file that maps `localhost` elsewhere: a clear-text token would go
    // there.
    #[tokio::test]
    async fn x02_localhost_is_this_machine_whatever_a_resolver_says() {
        for (name, expected) in [
            ("localhost", &["127.0.0.1:0", "[::1]:0"][..]),
            ("LocalHost", &["127.0.0.1:0", "[::1]:0"]),
            ("localhost.", &["127.0.0.1:0", "[::1]:0"]),
            ("localhost.example", &["203.0.113.7:0"]),
            ("api.example", &["203.0.113.7:0"]),
        ] {
            let found = Resolver(Lying).call(name.parse().unwrap()).await.unwrap();
            assert_eq!(found.map(|address| address.to_string()).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
