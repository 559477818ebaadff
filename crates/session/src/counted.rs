//! What the doors count, and what an operator reads of it.
//! Invariant: reading changes nothing but the gauges.

use prometheus_client::encoding::text::encode;

use crate::service::Service;

impl Service {
    /// Counts a call of a tool. `tool` and `outcome` are words of ours, never a caller's.
    pub fn called(&self, tool: &'static str, outcome: &'static str, seconds: f64) {
        let tool = ("tool", tool.to_owned());
        self.meter.calls.get_or_create(&vec![tool.clone(), ("outcome", outcome.to_owned())]).inc();
        self.meter.call_seconds.get_or_create(&vec![tool]).observe(seconds);
    }

    /// All that was counted, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        self.meter.sessions.set(i64::try_from(self.live_sessions()).unwrap_or(i64::MAX));
        self.meter.runs.set(i64::try_from(self.lives.count()).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.meter.registry);
        text
    }
}
