//! Counts tool calls and renders all metrics. Apart from `meter`, because the service itself holds the meter.
//! Invariant: rendering changes only the gauges.

use prometheus_client::encoding::text::encode;

use crate::service::Service;

impl Service {
    /// Counts a call of a tool. `tool` and `outcome` come from fixed sets, because labels with a caller's text would
    /// be unbounded.
    pub fn count_call(&self, tool: &'static str, outcome: &'static str, seconds: f64) {
        let tool = ("tool", tool.to_owned());
        self.meter.calls.get_or_create(&vec![tool.clone(), ("outcome", outcome.to_owned())]).inc();
        self.meter.call_seconds.get_or_create(&vec![tool]).observe(seconds);
    }

    /// Returns all metrics in the text format of Prometheus. Only here are the gauges set, since only a reader of the
    /// metrics needs them.
    pub fn metrics(&self) -> String {
        self.meter.live_sessions.set(i64::try_from(self.live_sessions()).unwrap_or(i64::MAX));
        self.meter.live_runs.set(i64::try_from(self.live_runs.count()).unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = encode(&mut text, &self.meter.registry);
        text
    }
}
