//! The type `FileKey`: the key of a secrets file, which is derived from the passphrase. It encrypts and decrypts
//! secrets.
//!
//! Invariants:
//! - An encrypted secret can be decrypted only in its own file, for its own tenant and name. Otherwise a person who can
//!   write the file could move the secret of one tenant to another tenant.
//! - The memory of the key and of plain texts is overwritten when they are dropped.

use base::Secret;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::error::Error;
use super::format::{Header, KeyCost, NONCE_BYTES, ParsedFile, Sealed, SecretId};

/// The key of one secrets file.
pub struct FileKey {
    /// The header of the file. The tag of each secret covers the header, so a secret cannot be moved to another file.
    pub header: Header,
    cipher: XChaCha20Poly1305,
}

/// The cipher and the check value that are derived from a passphrase.
struct DerivedKey {
    cipher: XChaCha20Poly1305,
    /// The check value that is stored in the header (`Header::check`).
    check: [u8; 32],
}

impl FileKey {
    /// Returns a new key for a file that does not exist yet.
    pub fn new(passphrase: &Secret, cost: KeyCost) -> Result<Self, Error> {
        let salt = random_bytes()?;
        let DerivedKey { cipher, check } = derive_key(passphrase, cost, &salt)?;
        Ok(Self { header: Header { cost, salt, check }, cipher })
    }

    /// Returns the key of a file with this header, or `WrongKey` if the passphrase does not match.
    pub fn of_file(passphrase: &Secret, header: &Header) -> Result<Self, Error> {
        let DerivedKey { cipher, check } = derive_key(passphrase, header.cost, &header.salt)?;
        if check == header.check { Ok(Self { header: header.clone(), cipher }) } else { Err(Error::WrongKey) }
    }

    /// Encrypts a secret for its tenant and name.
    pub fn seal(&self, id: &SecretId, value: &Secret) -> Result<Sealed, Error> {
        self.encrypt(value.expose().as_bytes(), &self.value_context(id))
    }

    /// Decrypts a secret that was sealed under the same id.
    pub fn open(&self, id: &SecretId, sealed: &Sealed) -> Result<Secret, Error> {
        let tampered = || Error::Damaged { what: "the value of a secret was changed without the key" };
        let payload = Payload { msg: &sealed.bytes, aad: &self.value_context(id) };
        let plain = self.cipher.decrypt(&XNonce::from(sealed.nonce), payload).map_err(|_| tampered())?;
        let plain = Zeroizing::new(plain);
        std::str::from_utf8(&plain).map(Secret::new).map_err(|_| tampered())
    }

    /// Returns a tag over the bytes of a file. The tag proves that no entry was removed, or replaced by an older one,
    /// without the key. The tags of the single secrets do not prove this.
    pub fn seal_file(&self, covered: &[u8]) -> Result<Sealed, Error> {
        self.encrypt(b"", &[b"file", covered].concat())
    }

    /// Verifies the tag that `seal_file` made.
    pub fn check_file(&self, file: &[u8], parsed: &ParsedFile) -> Result<(), Error> {
        let context = [b"file", &file[..parsed.covered]].concat();
        let payload = Payload { msg: &parsed.seal.bytes, aad: &context };
        match self.cipher.decrypt(&XNonce::from(parsed.seal.nonce), payload) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Damaged { what: "the file was changed without the key" }),
        }
    }

    fn encrypt(&self, plain: &[u8], context: &[u8]) -> Result<Sealed, Error> {
        // The nonce is random and not a counter, because restoring a backup would reset a counter and repeat nonces.
        // Random values of 192 bits do not repeat.
        let nonce: [u8; NONCE_BYTES] = random_bytes()?;
        let payload = Payload { msg: plain, aad: context };
        let bytes = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| Error::Crypto)?;
        Ok(Sealed { nonce, bytes })
    }

    /// Returns the data that the tag of a secret covers in addition to the secret: header, tenant and name. Each text
    /// has its length before it, so that two different pairs of texts never give the same bytes.
    fn value_context(&self, id: &SecretId) -> Vec<u8> {
        let mut context = b"value".to_vec();
        context.extend(self.header.bytes());
        for text in [&id.tenant, &id.name] {
            context.extend((text.len() as u64).to_le_bytes());
            context.extend(text.as_bytes());
        }
        context
    }
}

/// Derives 64 bytes from the passphrase. The first half is the key of the cipher, and the second half is the check
/// value.
fn derive_key(passphrase: &Secret, cost: KeyCost, salt: &[u8]) -> Result<DerivedKey, Error> {
    let params = argon2::Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(64));
    let params = params.map_err(|_| Error::Damaged { what: "the key cost in the file is invalid" })?;
    let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let mut bytes = Zeroizing::new([0u8; 64]);
    argon.hash_password_into(passphrase.expose().as_bytes(), salt, bytes.as_mut_slice()).map_err(|_| Error::Crypto)?;
    let cipher = XChaCha20Poly1305::new_from_slice(&bytes[..32]).map_err(|_| Error::Crypto)?;
    let mut check = [0u8; 32];
    check.copy_from_slice(&bytes[32..]);
    Ok(DerivedKey { cipher, check })
}

fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Crypto)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: KeyCost = KeyCost { memory_kib: 8, passes: 1, lanes: 1 };

    fn id(tenant: &str, name: &str) -> SecretId {
        SecretId { tenant: tenant.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_value_opens_only_in_its_file_under_its_tenant_and_name() {
        let passphrase = Secret::new("a passphrase");
        let key = FileKey::new(&passphrase, CHEAP).unwrap();
        let sealed = key.seal(&id("local", "TOKEN"), &Secret::new("hunter2")).unwrap();
        assert!(!sealed.bytes.windows(7).any(|part| part == b"hunter2"));
        let same_key = FileKey::of_file(&passphrase, &key.header).unwrap();
        assert_eq!(same_key.open(&id("local", "TOKEN"), &sealed).unwrap().expose(), "hunter2");
        for other in [id("local", "TOKEN2"), id("other", "TOKEN"), id("localT", "OKEN")] {
            assert!(matches!(same_key.open(&other, &sealed), Err(Error::Damaged { .. })), "{other:?}");
        }
        // The same passphrase has another key in another file, because each file has its own salt.
        let key_of_another_file = FileKey::new(&passphrase, CHEAP).unwrap();
        assert!(key_of_another_file.open(&id("local", "TOKEN"), &sealed).is_err());
    }

    #[test]
    fn another_passphrase_is_a_wrong_key() {
        let key = FileKey::new(&Secret::new("right"), CHEAP).unwrap();
        for wrong in ["", "Right", "right ", "wrong"] {
            assert!(matches!(FileKey::of_file(&Secret::new(wrong), &key.header), Err(Error::WrongKey)), "{wrong:?}");
        }
    }
}
