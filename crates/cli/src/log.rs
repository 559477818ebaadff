//! Structured logs on standard error: for people on a terminal, JSON otherwise.
//! Invariant: `RUST_LOG` filters; nothing is logged to standard output, which may be a protocol.

use std::io::IsTerminal;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// `default` holds when `RUST_LOG` is not set, and where it cannot be read (`target=level,…`, `debug`).
pub fn init(default: &str) {
    // `Targets` instead of `EnvFilter`: the same directives without span fields, and without a regex engine to build.
    let asked = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = asked.or_else(|| default.parse().ok()).unwrap_or_default();
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = if std::io::stderr().is_terminal() {
        logs.with_target(false).boxed()
    } else {
        logs.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
    };
    // A second `init` in one process keeps the first.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
