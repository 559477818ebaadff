//! Tells which processes on this data folder are alive: each holds a lock on a file of its own for as long as it lives.
//! Invariant: the kernel releases a lock when its process ends, however it ends, so a dead process is never reported as alive.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::InstanceId;
use ports::{Entropy, Presence};

use super::SystemEntropy;

pub struct FilePresence {
    me: InstanceId,
    /// The folder with the files of all processes.
    folder: PathBuf,
    /// The locked file of this process. Dropping it releases the lock.
    _lock: File,
}

impl FilePresence {
    /// Makes this process known in `processes` below a folder, and removes the files of dead processes.
    pub fn join(data: &Path) -> std::io::Result<Self> {
        let folder = data.join("processes");
        std::fs::create_dir_all(&folder)?;
        let me = InstanceId::from_random(SystemEntropy.bytes());
        // The file gets its name after it is locked. A file with its name but without its lock would be taken for that of a dead
        // process, and removed.
        let unnamed = folder.join(format!("{STARTING}{me}"));
        let lock = OpenOptions::new().create_new(true).write(true).open(&unnamed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => std::io::ErrorKind::WouldBlock.into(),
        })?;
        std::fs::rename(&unnamed, folder.join(me.to_string()))?;
        sweep(&folder);
        Ok(Self { me, folder, _lock: lock })
    }
}

/// The prefix of a file that is not locked yet.
const STARTING: &str = "new-";
/// A file with the prefix `STARTING` that is older than this belongs to a process that died while it started.
const LONGEST_START: Duration = Duration::from_secs(60);

/// Removes the files of dead processes. A file that cannot be opened or removed stays.
fn sweep(folder: &Path) {
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
            // If the lock cannot be read, the process counts as alive: taking over a living process's runs would run them twice.
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
