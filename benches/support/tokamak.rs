//! Starts the binary `tokamak` on a data folder, and measures the memory and the processor time of the process.
//! Invariant: the process ends when its `Tokamak` is dropped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `tokamak serve`. Dropping the value kills it.
pub struct Tokamak {
    child: Child,
    /// The address and port that the server listens on.
    pub host: String,
    /// The time from the start of the process to its ready line.
    pub ready: Duration,
}

impl Tokamak {
    /// Starts the server on a data folder, and waits for its ready line.
    pub fn start(data: &Path) -> Self {
        let started = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tokamak"))
            .args(["serve", "--port", "0", "--data"])
            .arg(data)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let ready = started.elapsed();
        let host = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, host, ready }
    }

    /// Stops the server with a signal, and waits until the process has ended.
    pub fn stop(mut self) {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns the processor time of the server so far.
    pub fn processor(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Waits until the server uses no processor time. After its first start, a server compiles the JavaScript engine for some time.
    #[allow(dead_code, reason = "not every bench waits for it")]
    pub async fn wait_until_idle(&self) {
        let mut before = Duration::MAX;
        while self.processor() != before {
            before = self.processor();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Returns the resident memory of the server.
    pub fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Tokamak {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
