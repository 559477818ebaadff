//! The one byte form of a catalog: what its digest covers and what the store keeps for sessions that pin it.
//! Invariant: `from_canonical(canonical(c))` is `c`, with its fields and parameters in the same order, for that is the order in
//! which rows and tables show them; bytes that do not match the digest asked for are refused.

use base::Digest;

use crate::model::Catalog;

#[derive(Debug, thiserror::Error)]
pub enum PinError {
    #[error("pinned catalog {0} is damaged")]
    Damaged(Digest),
    #[error("pinned catalog {digest} was written in a form this version does not read")]
    Form {
        digest: Digest,
        #[source]
        cause: serde_json::Error,
    },
}

impl Catalog {
    pub fn canonical(&self) -> String {
        // The model has no map without an order, so its JSON is one text. A model of strings, numbers and maps always
        // serialises; were it not so, the empty form would match no digest.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn seal(mut self) -> Self {
        self.digest = Digest::of(self.canonical().as_bytes());
        self
    }
}

pub fn from_canonical(bytes: &[u8], digest: Digest) -> Result<Catalog, PinError> {
    if Digest::of(bytes) != digest {
        return Err(PinError::Damaged(digest));
    }
    let mut catalog: Catalog = serde_json::from_slice(bytes).map_err(|cause| PinError::Form { digest, cause })?;
    catalog.digest = digest;
    Ok(catalog)
}
