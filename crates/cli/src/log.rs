//! Sets up the logs, which go to standard error: as text if standard error is a terminal, as JSON otherwise.
//! Invariant: no log line goes to standard output, which may carry MCP messages. The variable `RUST_LOG` selects the log lines.

use std::io::IsTerminal;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging. `default` is the filter that applies if `RUST_LOG` is not set or is not a valid filter (`debug`, `target=level,…`).
pub fn init(default: &str) {
    // `Targets` reads the same directives as `EnvFilter`, except span fields, but it needs no regex engine.
    let from_environment = std::env::var("RUST_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let filter = from_environment.or_else(|| default.parse().ok()).unwrap_or_default();
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = if std::io::stderr().is_terminal() {
        logs.with_target(false).boxed()
    } else {
        logs.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
    };
    // A second call in one process fails. The failure is ignored, because the logs of the first call continue.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
