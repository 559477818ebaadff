//! Finds out which processes on this data folder are alive: each process locks a file of its own until it ends.
//! Invariant: a dead process is not reported as alive, because the kernel releases the lock when the process ends, even after a crash.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::InstanceId;
use ports::{Entropy, Presence};

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
    pub fn join(data: &Path) -> std::io::Result<Self> {
        let folder = data.join("processes");
        store::folder::create_private(&folder)?;
        let me = InstanceId::from_random(SystemEntropy.bytes());
        // The file is renamed to the id only after it is locked. Another process would take a file that has an id and no lock for the
        // file of a dead process, and remove it.
        let unnamed = folder.join(format!("{STARTING}{me}"));
        let lock = store::folder::create_new_file(&unnamed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => std::io::ErrorKind::WouldBlock.into(),
        })?;
        std::fs::rename(&unnamed, folder.join(me.to_string()))?;
        remove_dead_files(&folder);
        Ok(Self { me, folder, _lock: lock })
    }
}

/// The prefix of the file of a process that starts and has not locked its file yet.
const STARTING: &str = "new-";
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

    fn is_alive(&self, instance: InstanceId) -> bool {
        if instance == self.me {
            return true;
        }
        let path = self.folder.join(instance.to_string());
        let Ok(file) = File::open(&path) else { return false };
        match file.try_lock_shared() {
            // The lock is free, so the process has ended.
            Ok(()) => {
                let _ = std::fs::remove_file(&path);
                false
            }
            Err(TryLockError::WouldBlock) => true,
            // If the lock cannot be read, the process counts as alive, because a takeover from a process that is alive would run its
            // scripts twice.
            Err(TryLockError::Error(_)) => true,
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
        let one = FilePresence::join(data.path()).unwrap();
        let two = FilePresence::join(data.path()).unwrap();
        assert!(
            one.is_alive(two.this_process()) && two.is_alive(one.this_process()) && one.is_alive(one.this_process())
        );
        // After a kill the file stays without its lock.
        let folder = data.path().join("processes");
        let killed = InstanceId::from_random([7; 16]);
        std::fs::write(folder.join(killed.to_string()), b"").unwrap();
        assert!(!one.is_alive(killed));
        assert!(!one.is_alive(killed), "the answer is the same after the file was removed");
        let ended = two.this_process();
        drop(two);
        assert!(!one.is_alive(ended));
        // The next start removes the files of killed processes only.
        for n in 0..3 {
            std::fs::write(folder.join(InstanceId::from_random([n; 16]).to_string()), b"").unwrap();
        }
        let three = FilePresence::join(data.path()).unwrap();
        assert!(three.is_alive(one.this_process()));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    }
}
