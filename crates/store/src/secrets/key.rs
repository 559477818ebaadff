//! A passphrase to a key, and what the key seals and opens.
//! Invariant: a value opens only in the store, for the tenant and under the name it was sealed for; key and plain text are
//! overwritten when they are dropped.

use base::Secret;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::error::Error;
use super::format::{Cost, Header, NONCE, Parsed, Place, Sealed};

pub struct Key {
    /// Names the store: it is part of what every tag covers.
    pub header: Header,
    cipher: XChaCha20Poly1305,
}

impl Key {
    /// For a store that does not exist yet.
    pub fn make(passphrase: &Secret, cost: Cost) -> Result<Self, Error> {
        let salt = random()?;
        let (cipher, check) = derive(passphrase, cost, &salt)?;
        Ok(Self { header: Header { cost, salt, check }, cipher })
    }

    pub fn derive(passphrase: &Secret, header: &Header) -> Result<Self, Error> {
        let (cipher, check) = derive(passphrase, header.cost, &header.salt)?;
        if check == header.check { Ok(Self { header: header.clone(), cipher }) } else { Err(Error::WrongKey) }
    }

    pub fn seal(&self, place: &Place, value: &Secret) -> Result<Sealed, Error> {
        self.encrypt(value.expose().as_bytes(), &self.value_context(place))
    }

    pub fn open(&self, place: &Place, sealed: &Sealed) -> Result<Secret, Error> {
        let tampered = || Error::Damaged { what: "a value was changed without the key" };
        let payload = Payload { msg: &sealed.bytes, aad: &self.value_context(place) };
        let plain = self.cipher.decrypt(&XNonce::from(sealed.nonce), payload).map_err(|_| tampered())?;
        let plain = Zeroizing::new(plain);
        std::str::from_utf8(&plain).map(Secret::new).map_err(|_| tampered())
    }

    /// Over the file's bytes, so that nothing can be taken out or put back without the key.
    pub fn seal_file(&self, covered: &[u8]) -> Result<Sealed, Error> {
        self.encrypt(b"", &[b"file", covered].concat())
    }

    pub fn check_file(&self, file: &[u8], parsed: &Parsed) -> Result<(), Error> {
        let context = [b"file", &file[..parsed.covered]].concat();
        let payload = Payload { msg: &parsed.seal.bytes, aad: &context };
        match self.cipher.decrypt(&XNonce::from(parsed.seal.nonce), payload) {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::Damaged { what: "it was changed without the key" }),
        }
    }

    fn encrypt(&self, plain: &[u8], context: &[u8]) -> Result<Sealed, Error> {
        // Random: 192 bits do not meet twice, and no counter can be set back by a restored backup.
        let nonce: [u8; NONCE] = random()?;
        let payload = Payload { msg: plain, aad: context };
        let bytes = self.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| Error::Crypto)?;
        Ok(Sealed { nonce, bytes })
    }

    /// Lengths stand before both texts, so that no other pair gives the same bytes.
    fn value_context(&self, (tenant, name): &Place) -> Vec<u8> {
        let mut context = b"value".to_vec();
        context.extend(self.header.bytes());
        for text in [tenant, name] {
            context.extend((text.len() as u64).to_le_bytes());
            context.extend(text.as_bytes());
        }
        context
    }
}

fn derive(passphrase: &Secret, cost: Cost, salt: &[u8]) -> Result<(XChaCha20Poly1305, [u8; 32]), Error> {
    let params = argon2::Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(64));
    let params = params.map_err(|_| Error::Damaged { what: "its cost of a key cannot be used" })?;
    let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let mut both = Zeroizing::new([0u8; 64]);
    argon.hash_password_into(passphrase.expose().as_bytes(), salt, both.as_mut_slice()).map_err(|_| Error::Crypto)?;
    let cipher = XChaCha20Poly1305::new_from_slice(&both[..32]).map_err(|_| Error::Crypto)?;
    let mut check = [0u8; 32];
    check.copy_from_slice(&both[32..]);
    Ok((cipher, check))
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Crypto)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory_kib: 8, passes: 1, lanes: 1 };

    fn place(tenant: &str, name: &str) -> Place {
        (tenant.to_owned(), name.to_owned())
    }

    #[test]
    fn a_value_opens_only_where_it_was_sealed() {
        let phrase = Secret::new("a passphrase");
        let key = Key::make(&phrase, CHEAP).unwrap();
        let sealed = key.seal(&place("local", "TOKEN"), &Secret::new("hunter2")).unwrap();
        assert!(!sealed.bytes.windows(7).any(|part| part == b"hunter2"));
        let same = Key::derive(&phrase, &key.header).unwrap();
        assert_eq!(same.open(&place("local", "TOKEN"), &sealed).unwrap().expose(), "hunter2");
        for other in [place("local", "TOKEN2"), place("other", "TOKEN"), place("localT", "OKEN")] {
            assert!(matches!(same.open(&other, &sealed), Err(Error::Damaged { .. })), "{other:?}");
        }
        // The same passphrase in another store has another salt, and so another key.
        let elsewhere = Key::make(&phrase, CHEAP).unwrap();
        assert!(elsewhere.open(&place("local", "TOKEN"), &sealed).is_err());
    }

    #[test]
    fn another_passphrase_is_a_wrong_key() {
        let key = Key::make(&Secret::new("right"), CHEAP).unwrap();
        for wrong in ["", "Right", "right ", "wrong"] {
            assert!(matches!(Key::derive(&Secret::new(wrong), &key.header), Err(Error::WrongKey)), "{wrong:?}");
        }
    }
}
