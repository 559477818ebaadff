//! Sets up logs on standard error: text if it is a terminal, JSON otherwise.
//! Invariant: nothing is logged to standard output, which may carry MCP messages. `RUST_LOG` chooses what is logged.

use std::io::IsTerminal;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging. `default` is the filter if `RUST_LOG` is not set or is not a valid filter (`debug`, `target=level,…`).
pub fn init(default: &str) {
    // `Targets` is used instead of `EnvFilter`: it reads the same directives except span fields, and needs no regex engine.
    let from_environment = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = from_environment.or_else(|| default.parse().ok()).unwrap_or_default();
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = if std::io::stderr().is_terminal() {
        logs.with_target(false).boxed()
    } else {
        logs.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
    };
    // A second call in one process fails and leaves the first filter in place, which is as good.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
