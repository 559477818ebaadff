//! The type `Listeners`: the addresses on which the live processes of a data folder listen.
//! Invariant: a process writes its addresses before its file gets the name that the other processes read, so a process
//! that can be called is known to all.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use upstream::OwnServers;

use super::presence::{PROCESSES_FOLDER, STARTING};

/// The largest file of a process that is read. It has one line for each address.
const MAX_FILE_BYTES: u64 = 4 * 1024;

/// The servers of a data folder, which code and catalogs cannot call.
pub struct Listeners {
    /// The folder with the file of each process.
    folder: PathBuf,
    /// The names, with ports, by which callers reach the servers from outside.
    names: Vec<(String, u16)>,
}

impl Listeners {
    pub fn new(data: &Path, names: Vec<(String, u16)>) -> Self {
        Self { folder: data.join(PROCESSES_FOLDER), names }
    }
}

impl OwnServers for Listeners {
    /// Reads the files of all processes. A folder has few files, and they are small.
    fn listeners(&self) -> Vec<SocketAddr> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = files.filter(|entry| !entry.file_name().to_string_lossy().starts_with(STARTING));
        named.flat_map(|entry| listeners_of(&entry.path())).collect()
    }

    fn names(&self) -> Vec<(String, u16)> {
        self.names.clone()
    }
}

/// Returns the addresses of one process, or none if the process is dead: the port of a dead process may belong to another
/// program.
fn listeners_of(path: &Path) -> Vec<SocketAddr> {
    let Ok(mut file) = File::open(path) else { return Vec::new() };
    let mut text = String::new();
    if (&mut file).take(MAX_FILE_BYTES).read_to_string(&mut text).is_err() || text.is_empty() {
        return Vec::new();
    }
    if file.try_lock_shared().is_ok() {
        return Vec::new();
    }
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::FilePresence;
    use super::*;

    #[test]
    fn the_listeners_of_live_processes_are_known() {
        let data = tempfile::tempdir().unwrap();
        let listeners = Listeners::new(data.path(), Vec::new());
        assert!(listeners.listeners().is_empty());
        let one: SocketAddr = "127.0.0.1:3000".parse().unwrap();
        let two: SocketAddr = "[::]:3001".parse().unwrap();
        let first = FilePresence::join(data.path(), &[one]).unwrap();
        let second = FilePresence::join(data.path(), &[two]).unwrap();
        let _without = FilePresence::join(data.path(), &[]).unwrap();
        let mut found = listeners.listeners();
        found.sort();
        assert_eq!(found, [one, two]);
        drop(second);
        assert_eq!(listeners.listeners(), [one]);
        // The file of a killed process stays without its lock.
        std::fs::write(data.path().join("processes").join("killed"), "127.0.0.1:9\n").unwrap();
        assert_eq!(listeners.listeners(), [one]);
        drop(first);
        assert!(listeners.listeners().is_empty());
    }
}
