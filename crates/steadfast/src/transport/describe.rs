use super::Transport;
use crate::description::LayerDescription;

impl Transport {
    /// Describes how connections are made. Of a proxy it shows only the address.
    pub(crate) fn describe(&self) -> LayerDescription {
        let layer = LayerDescription::new("Transport")
            .with("sends over", "HTTP/1.1")
            .with("connect timeout", format!("{:?}", self.connect_timeout))
            .with("unused connections", format!("{:?}", self.idle_timeout))
            .with("unused connections, for orders", format!("{:?}", self.order_idle_timeout))
            .with("connections", format!("at most {}", self.max_connections))
            .with("redirects", "never followed");
        let layer = match self.local_address {
            Some(address) => layer.with("local address", address),
            None => layer,
        };
        let layer = match &self.proxy {
            Some(proxy) => layer.with("proxy", proxy.host()),
            None => layer,
        };
        let own = self.roots.len();
        if own == 0 { layer } else { layer.with("authorities", format!("the public ones and {own} more")) }
    }
}
