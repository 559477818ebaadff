//! Which processes on this data folder are alive: each holds a lock on a file of its own for as long as it lives.
//! Invariant: the kernel gives a lock back when its process ends, however it ends, so a dead process is never taken for alive.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::InstanceId;
use ports::{Entropy, Presence};

use super::SystemEntropy;

pub struct FilePresence {
    me: InstanceId,
    folder: PathBuf,
    /// Held, never read.
    _lock: File,
}

impl FilePresence {
    /// Makes this process known in the folder of a data folder that is for this.
    pub fn join(data: &Path) -> std::io::Result<Self> {
        let folder = data.join("processes");
        std::fs::create_dir_all(&folder)?;
        let me = InstanceId::from_random(SystemEntropy.bytes());
        // It has its name only when it is locked: whoever sees the name can ask for the lock.
        let unnamed = folder.join(format!("{UNNAMED}{me}"));
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

/// Before a process has its name.
const UNNAMED: &str = "new-";
/// No start takes so long.
const A_START: Duration = Duration::from_secs(60);

/// Files of processes that were killed; what cannot be looked at or removed stays.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let named = !name.to_string_lossy().starts_with(UNNAMED);
        let old = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        let over = named || old.is_some_and(|age| age > A_START);
        if over && File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok()) {
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
            // Nobody holds it: its process has ended, and its file with it.
            Ok(()) => {
                let _ = std::fs::remove_file(&path);
                false
            }
            Err(TryLockError::WouldBlock) => true,
            // What cannot be told is left alone.
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
        let (one, two) = (FilePresence::join(data.path()).unwrap(), FilePresence::join(data.path()).unwrap());
        assert!(
            one.is_alive(two.this_process()) && two.is_alive(one.this_process()) && one.is_alive(one.this_process())
        );
        let gone = two.this_process();
        // As after a kill: the lock goes, the file stays.
        std::fs::write(data.path().join("processes").join(InstanceId::from_random([7; 16]).to_string()), b"").unwrap();
        assert!(!one.is_alive(InstanceId::from_random([7; 16])));
        assert!(!one.is_alive(InstanceId::from_random([7; 16])), "asked again");
        drop(two);
        assert!(!one.is_alive(gone));
        // Files of others that were killed go with the next start, those of the living stay.
        for n in 0..3 {
            std::fs::write(data.path().join("processes").join(InstanceId::from_random([n; 16]).to_string()), b"")
                .unwrap();
        }
        let three = FilePresence::join(data.path()).unwrap();
        assert!(three.is_alive(one.this_process()));
        assert_eq!(std::fs::read_dir(data.path().join("processes")).unwrap().count(), 2);
    }
}
