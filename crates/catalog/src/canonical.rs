//! The canonical form of a catalog: the JSON bytes from which its digest is computed. The store keeps these bytes for
//! the sessions that use the catalog.
//! Invariants: reading the canonical form returns an equal catalog. Fields and parameters have the same order as
//! before, because rows and tables show them in this order. Bytes that do not have the requested digest are refused.

use base::Digest;

use crate::model::Catalog;

/// Why a catalog that a session uses (pins) cannot be read from its stored bytes.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The stored bytes do not have the catalog's digest.
    #[error("the stored catalog {0} of a session is damaged; restore it from a backup, or open a new session")]
    Damaged(Digest),
    /// The bytes are intact, but a program version with another model wrote them.
    #[error("the stored catalog {digest} of a session has a form that this version cannot read; open a new session")]
    Form {
        digest: Digest,
        #[source]
        cause: serde_json::Error,
    },
}

impl Catalog {
    /// Returns the canonical form as JSON text.
    pub fn canonical(&self) -> String {
        // Every map of the model keeps its order, so equal catalogs have equal texts. Serialising strings, numbers
        // and maps with string keys cannot fail. The empty text of `unwrap_or_default` would match no digest, so a
        // session could not use a wrong catalog.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Computes and sets the digest. The reader calls this once, when the catalog is complete.
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
