//! Recognises network file systems, on which a database in WAL mode is not safe: processes on two machines do not share its memory file,
//! and locks and flushes may not do what they say.
//! Invariant: a file system that is not known to be one of a network is accepted.

use std::io;
use std::path::Path;

/// Returns the number that names the type of the file system of a path, as `statfs` of Linux returns it. On other systems it is 0, which no
/// network file system has.
#[cfg(target_os = "linux")]
pub fn file_system_type(path: &Path) -> io::Result<u64> {
    // The type of the field differs between architectures. All numbers have 32 bits, and some architectures extend their sign.
    let found = rustix::fs::statfs(path)?.f_type;
    Ok(u64::try_from(i128::from(found) & 0xffff_ffff).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
pub fn file_system_type(_path: &Path) -> io::Result<u64> {
    Ok(0)
}

/// Returns the name of the network file system with this number, or `None` for another file system. FUSE is one of them, because it carries
/// sshfs, s3fs and the shared folders of virtual machines, and the kernel does not say which of its file systems are local.
pub fn network_name(file_system: u64) -> Option<&'static str> {
    Some(match file_system {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x5346_414f => "AFS",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_have_names_and_local_ones_do_not() {
        for (number, name) in [(0x6969, "NFS"), (0xfe53_4d42, "SMB"), (0xff53_4d42, "SMB"), (0x6573_5546, "FUSE")] {
            assert_eq!(network_name(number), Some(name));
        }
        // ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS.
        for number in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0] {
            assert_eq!(network_name(number), None);
        }
        assert!(file_system_type(Path::new("/")).is_ok());
        assert!(file_system_type(Path::new("/nowhere/at/all")).is_err() || !cfg!(target_os = "linux"));
    }
}
