//! How much memory this machine has, and what of it the steps of JavaScript may use together.
//! Invariant: where nothing can be read, the least is assumed.

use std::fs;

/// What steps under way get where the settings do not say it: a quarter of what there is, within these.
const LEAST_MB: u64 = 1_024;
const MOST_MB: u64 = 4_096;

pub fn at_work_mb() -> u64 {
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = limits.iter().filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    share(limits.chain(machine).min())
}

/// In bytes, as the kernel writes it.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kb.checked_mul(1_024)
}

fn share(bytes: Option<u64>) -> u64 {
    bytes.map_or(LEAST_MB, |bytes| (bytes / 4) >> 20).clamp(LEAST_MB, MOST_MB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_memory_within_bounds() {
        assert_eq!(total("MemTotal:       24653244 kB\nMemFree: 1 kB\n"), Some(24_653_244 * 1_024));
        assert_eq!(total("nothing of the kind"), None);
        assert_eq!((share(None), share(Some(1 << 30)), share(Some(8 << 30))), (1_024, 1_024, 2_048));
        assert_eq!((share(Some(24 << 30)), share(Some(u64::MAX))), (4_096, 4_096));
    }
}
