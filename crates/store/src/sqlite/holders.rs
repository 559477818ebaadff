//! Finds the processes that have a database open, so that an error can name them.
//! Invariant: the answer is for a message only. It may be incomplete, and no decision depends on it.

use std::path::Path;

/// Returns the ids of other processes that hold a lock on the file, in ascending order. The list is empty if the system
/// does not tell.
pub fn of(path: &Path) -> Vec<u32> {
    let Some(inode) = inode_of(path) else { return Vec::new() };
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Vec::new() };
    let mut holders: Vec<u32> =
        locks.lines().filter_map(|line| holder_in(line, inode)).filter(|pid| *pid != std::process::id()).collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}

/// Returns the process of a line of `/proc/locks`, such as `3: POSIX  ADVISORY  READ  4211 08:02:131 0 EOF`, if the lock
/// is on the file with this inode.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    // The device is not compared: on some file systems the kernel shows another number here than `stat` does.
    let mut fields = line.split_whitespace().skip_while(|field| *field != "POSIX");
    let (pid, file) = (fields.nth(3)?, fields.next()?);
    let is_this_file = file.rsplit(':').next()?.parse() == Ok(inode);
    // A process of another namespace has the number 0 or -1.
    pid.parse().ok().filter(|pid| *pid != 0 && is_this_file)
}

#[cfg(unix)]
fn inode_of(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn inode_of(_path: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_holder_of_a_file() {
        let line = "3: POSIX  ADVISORY  READ  4211 08:02:131 1073741826 1073742335";
        assert_eq!(holder_in(line, 131), Some(4211));
        assert_eq!(holder_in(line, 31), None);
        assert_eq!(holder_in("3: -> POSIX  ADVISORY  WRITE 17 00:2a:131 0 EOF", 131), Some(17), "a waiting process");
        assert_eq!(holder_in("3: FLOCK  ADVISORY  WRITE 17 00:2a:131 0 EOF", 131), None);
        assert_eq!(holder_in("3: POSIX  ADVISORY  READ  -1 08:02:131 0 EOF", 131), None);
        assert_eq!(holder_in("3: POSIX  ADVISORY  READ  0 08:02:131 0 EOF", 131), None);
        assert_eq!(holder_in("POSIX", 131), None);
        assert_eq!(holder_in("", 131), None);
    }
}
