//! Finds out which processes on this data folder are alive: each process locks a file of its own until it ends.
//! Invariant: a process is reported as dead only if its lock is free or its file is gone from a folder that is in order. The kernel
//! releases the lock when the process ends, even after a crash; every other failure to look is reported as not known.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::InstanceId;
use ports::{Entropy, Liveness, Presence};

use super::SystemEntropy;

/// The registration of this process in the folder, and the view of the other processes.
pub struct FilePresence {
    /// The id of this process, which is the name of its file.
    me: InstanceId,
    /// The folder with the file of each process.
    folder: PathBuf,
    /// The locked file of this process. Dropping it releases the lock.
    _lock: File,
}

impl FilePresence {
    /// Registers this process in the subfolder `processes` of `data`, and removes the files of dead processes.
    ///
    /// `listeners` are the addresses on which this process listens. Other processes read them from its file.
    pub fn join(data: &Path, listeners: &[SocketAddr]) -> std::io::Result<Self> {
        let folder = data.join(PROCESSES_FOLDER);
        store::folder::create_private(&folder)?;
        let me = InstanceId::from_random(SystemEntropy.bytes());
        // The file is renamed to the id only after it is locked. Another process would take a file that has an id and no lock for the
        // file of a dead process, and remove it.
        let unnamed = folder.join(format!("{STARTING}{me}"));
        let mut lock = store::folder::create_new_file(&unnamed)?;
        let addresses: String = listeners.iter().map(|address| format!("{address}\n")).collect();
        lock.write_all(addresses.as_bytes())?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => ErrorKind::WouldBlock.into(),
        })?;
        std::fs::rename(&unnamed, folder.join(me.to_string()))?;
        remove_dead_files(&folder);
        Ok(Self { me, folder, _lock: lock })
    }
}

/// The folder in the data folder with the file of each process.
pub(super) const PROCESSES_FOLDER: &str = "processes";
/// The prefix of the file of a process that starts and has not locked its file yet.
pub(super) const STARTING: &str = "new-";
/// A file with the prefix `STARTING` that is older than this belongs to a process that died during its start.
const LONGEST_START: Duration = Duration::from_secs(60);

/// Removes the files of dead processes. A file that cannot be opened or removed is left for the next process that starts.
fn remove_dead_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let starting = entry.file_name().to_string_lossy().starts_with(STARTING);
        let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        let may_be_dead = !starting || age.is_some_and(|age| age > LONGEST_START);
        if may_be_dead && File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

impl Presence for FilePresence {
    fn this_process(&self) -> InstanceId {
        self.me
    }

    fn liveness(&self, instance: InstanceId) -> Liveness {
        if instance == self.me {
            return Liveness::Alive;
        }
        match File::open(self.folder.join(instance.to_string())) {
            Ok(file) => match file.try_lock_shared() {
                // The lock is free, so the process has ended.
                Ok(()) => Liveness::Dead,
                Err(TryLockError::WouldBlock) => Liveness::Alive,
                Err(TryLockError::Error(_)) => Liveness::NotKnown,
            },
            // A process removes its file at its end, and the next start removes the files of killed processes. The file
            // of this process shows that the folder is still the one that both have joined.
            Err(error) if error.kind() == ErrorKind::NotFound && self.folder.join(self.me.to_string()).exists() => {
                Liveness::Dead
            }
            // Too many open files, a removed folder, no permission: none of these says anything about the process.
            Err(_) => Liveness::NotKnown,
        }
    }
}

impl Drop for FilePresence {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.folder.join(self.me.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let data = tempfile::tempdir().unwrap();
        let one = FilePresence::join(data.path(), &[]).unwrap();
        let two = FilePresence::join(data.path(), &[]).unwrap();
        for (observer, other) in [(&one, &two), (&two, &one), (&one, &one)] {
            assert_eq!(observer.liveness(other.this_process()), Liveness::Alive);
        }
        // After a kill the file stays without its lock.
        let folder = data.path().join("processes");
        let killed = InstanceId::from_random([7; 16]);
        std::fs::write(folder.join(killed.to_string()), b"").unwrap();
        assert_eq!(one.liveness(killed), Liveness::Dead);
        let ended = two.this_process();
        drop(two);
        assert_eq!(one.liveness(ended), Liveness::Dead);
        // The next start removes the files of killed processes only.
        for n in 0..3 {
            std::fs::write(folder.join(InstanceId::from_random([n; 16]).to_string()), b"").unwrap();
        }
        let three = FilePresence::join(data.path(), &[]).unwrap();
        assert_eq!(three.liveness(one.this_process()), Liveness::Alive);
        assert_eq!(one.liveness(killed), Liveness::Dead, "the answer is the same after the file was removed");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_cannot_be_looked_at_says_nothing_about_a_process() {
        let data = tempfile::tempdir().unwrap();
        let one = FilePresence::join(data.path(), &[]).unwrap();
        let two = FilePresence::join(data.path(), &[]).unwrap();
        std::fs::rename(data.path().join("processes"), data.path().join("elsewhere")).unwrap();
        assert_eq!(one.liveness(two.this_process()), Liveness::NotKnown);
        // A file in the place of the folder gives another error than a missing one.
        std::fs::write(data.path().join("processes"), b"").unwrap();
        assert_eq!(one.liveness(two.this_process()), Liveness::NotKnown);
    }
}
