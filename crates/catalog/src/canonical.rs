//! The canonical form of a catalog: the bytes that its digest covers and that the store keeps for sessions that pin it.
//! Invariants: reading the canonical form gives the same catalog, with its fields and parameters in the same order, since rows
//! and tables show them in that order. Bytes that do not match the requested digest are refused.

use base::Digest;

use crate::model::Catalog;

/// Why stored bytes are not the pinned catalog.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The bytes do not have the digest by which they were stored.
    #[error("pinned catalog {0} is damaged")]
    Damaged(Digest),
    /// The bytes are intact, but another version of this program wrote a model that this one cannot read.
    #[error("pinned catalog {digest} was written in a form this version does not read")]
    Form {
        digest: Digest,
        #[source]
        cause: serde_json::Error,
    },
}

impl Catalog {
    /// Returns the canonical form as JSON text.
    pub fn canonical(&self) -> String {
        // Every map of the model keeps its order, so equal catalogs give equal text. Strings, numbers and maps with string
        // keys always serialise. If that ever failed, the empty text would match no digest and the catalog could not be
        // pinned.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Sets the digest. The reader calls this once, when the catalog is complete.
    pub(crate) fn seal(mut self) -> Self {
        self.digest = Digest::of(self.canonical().as_bytes());
        self
    }
}

/// Reads a catalog from its canonical form and checks the bytes against `digest`.
pub fn from_canonical(bytes: &[u8], digest: Digest) -> Result<Catalog, PinError> {
    if Digest::of(bytes) != digest {
        return Err(PinError::Damaged(digest));
    }
    let mut catalog: Catalog = serde_json::from_slice(bytes).map_err(|cause| PinError::Form { digest, cause })?;
    catalog.digest = digest;
    Ok(catalog)
}
