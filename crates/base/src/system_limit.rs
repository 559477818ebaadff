//! The limits that the operating system sets for a process, as the errors of its calls show them.

/// Returns the limit that an error of the system shows to be reached, with the command that tells its value. `None` if the error has
/// another cause. The numbers are those of Linux and macOS for the errors that they share.
pub fn system_limit(error: &std::io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        // ENFILE
        23 => Some("the open files of the whole machine (`sysctl fs.file-max`)"),
        // EMFILE
        24 => Some("the open files of this process (`ulimit -n`)"),
        // EAGAIN of Linux and of macOS, which the start of a thread or process returns.
        11 | 35 => {
            Some("the threads and processes of this user or container (`ulimit -u`, `pids.max` of the control group)")
        }
        // ENOMEM
        12 => Some("the memory or address space of this process (`ulimit -v`, `memory.max` of the control group)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::system_limit;

    #[test]
    fn each_limit_is_named_with_the_command_that_tells_it() {
        let named = |code| system_limit(&Error::from_raw_os_error(code)).unwrap_or_default();
        assert!(named(24).contains("ulimit -n") && named(11).contains("ulimit -u") && named(12).contains("ulimit -v"));
        assert!(named(23).contains("file-max"));
        assert_eq!(system_limit(&Error::from_raw_os_error(2)), None);
        assert_eq!(system_limit(&Error::other("not of the system")), None);
    }
}
