//! Structured logs on standard error: for people on a terminal, JSON otherwise.
//! Invariant: `RUST_LOG` filters; nothing is logged to standard output, which may be a protocol.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// `default` holds when `RUST_LOG` is not set.
pub fn init(default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second `init` in one process keeps the first.
    let _ = if std::io::stderr().is_terminal() {
        logs.with_target(false).try_init()
    } else {
        logs.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init()
    };
}
