//! The lease of a run: the process that may continue it, and how often that process has changed.
//! Invariant: the epoch only grows. Two processes never own one run in the same epoch.

use base::InstanceId;
use serde::{Deserialize, Serialize};

/// The lease of one run. It is stored in a row of its own, which exists until the run ends and changes only with its owner or
/// with a cancellation. A transaction that checks the version of this row therefore checks both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// The process that may continue the run.
    pub owner: InstanceId,
    /// How often the run was taken over.
    pub epoch: u64,
}

impl Lease {
    /// Returns the lease of a new run.
    pub fn first(owner: InstanceId) -> Self {
        Self { owner, epoch: 0 }
    }

    /// Returns the lease of the next owner.
    #[must_use]
    pub fn taken_over_by(self, owner: InstanceId) -> Self {
        Self { owner, epoch: self.epoch + 1 }
    }
}
