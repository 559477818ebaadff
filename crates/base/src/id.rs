//! The ids of tenants, catalogs, sessions and runs, and the slots of a caller.
//! Invariant: every value of an id type is well formed. Text from outside becomes an id only through `parse`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use uuid::Uuid;

/// Why a text was refused as an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("an id must not be empty")]
    Empty,
    #[error("an id has at most {max} characters, this one has {actual}")]
    TooLong { max: usize, actual: usize },
    #[error("`{0}` is not allowed in an id; use letters, digits, `-`, `_` and `.`")]
    Character(char),
    #[error("the id `{0}` is not a UUID")]
    NotUuid(String),
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        // why: an id is cloned for every step and row that names it; a `SmolStr` stores a short id inline, so the clone
        // allocates nothing.
        pub struct $name(SmolStr);

        impl $name {
            /// Makes an id of a text, or refuses it. The allowed characters have no special meaning in a path, a URL
            /// or a log line, because ids appear in all three.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if text.is_empty() {
                    return Err(IdError::Empty);
                }
                let actual = text.chars().count();
                if actual > $max {
                    return Err(IdError::TooLong { max: $max, actual });
                }
                match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
                    Some(c) => Err(IdError::Character(c)),
                    None => Ok(Self(SmolStr::new(text))),
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.into()
            }
        }
    };
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes an id from 16 random bytes, which the caller takes from `ports::Entropy`.
            pub fn from_random(bytes: [u8; 16]) -> Self {
                Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
            }

            /// Reads a UUID, with or without hyphens, braces or the prefix `urn:uuid:`.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                Uuid::from_str(text).map(Self).map_err(|_| IdError::NotUuid(text.chars().take(64).collect()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.hyphenated())
            }
        }
    };
}

name_id!(
    /// The customer that a key belongs to. Every stored row and every reference to a blob carries a tenant id.
    TenantId,
    64
);
name_id!(
    /// The id of a catalog in the registry, such as `demo` or `github`.
    CatalogId,
    64
);
name_id!(
    /// The person or program within a tenant that a key names. A principal owns the slots of a connection that has no
    /// transport session.
    Principal,
    128
);
name_id!(
    /// The id of one incoming request. Every log line about the request carries this id.
    RequestId,
    64
);
uuid_id!(
    /// The id of a logical session, valid on any connection.
    LogicalSessionId
);
uuid_id!(
    /// The id of an execute session: one symbol space over pinned catalogs.
    ExecuteSessionId
);
uuid_id!(
    /// The id of one run of a program. Two runs of the same program have different ids, so both results are kept.
    RunId
);
uuid_id!(
    /// The id of one run of a script.
    ExecutionId
);
uuid_id!(
    /// The id of one server process among those that share a store.
    InstanceId
);

impl ExecutionId {
    /// Makes an id for a script run that starts at `now`. The id sorts after every id of an earlier time.
    pub fn new_at(now: crate::Timestamp, random: [u8; 16]) -> Self {
        // A UUID of version 7 holds 48 bits of time and takes 10 random bytes.
        let mut random_tail = [0; 10];
        random_tail.copy_from_slice(&random[6..]);
        let ms = u64::try_from(now.0).unwrap_or_default();
        Self(uuid::Builder::from_unix_timestamp_millis(ms, &random_tail).into_uuid())
    }

    /// Returns the id as a store key. Keys of newer runs sort before keys of older runs, so a scan returns the newest
    /// run first.
    pub fn to_newest_first_key(&self) -> String {
        // A scan of the store only goes upwards. Inverted bits reverse the order of ids.
        format!("{:032x}", !self.0.as_u128())
    }

    /// Returns the id from a key that `to_newest_first_key` made.
    pub fn from_newest_first_key(key: &str) -> Result<Self, IdError> {
        let bits = u128::from_str_radix(key, 16).map_err(|_| IdError::NotUuid(key.chars().take(64).collect()))?;
        Ok(Self(Uuid::from_u128(!bits)))
    }
}

impl TenantId {
    /// Returns the tenant of a server without authentication, which listens on loopback only.
    pub fn local() -> Self {
        Self(SmolStr::new_static("local"))
    }
}

impl Principal {
    /// Returns the only principal of a server without authentication.
    pub fn local() -> Self {
        Self(SmolStr::new_static("local"))
    }
}

/// The short name that one caller has for a logical session: `s0`, `s1`, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot(pub u32);

/// The error of parsing a [`Slot`]. The field has the refused text, shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a slot; a slot is `s` and a number, like `s0`")]
pub struct SlotError(String);

impl FromStr for Slot {
    type Err = SlotError;
    fn from_str(text: &str) -> Result<Self, SlotError> {
        // `u32::from_str` accepts a leading `+`, so the digits are checked first.
        let digits = text
            .strip_prefix('s')
            .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.map(Slot).ok_or_else(|| SlotError(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_refuse_characters_that_could_be_a_path_or_a_control() {
        for bad in ["", "a/b", "..\u{0}", "a b", "é", &"x".repeat(65)] {
            assert!(TenantId::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(TenantId::parse("acme-1").unwrap().as_str(), "acme-1");
    }

    #[test]
    fn slots_round_trip_and_refuse_lookalikes() {
        assert_eq!("s12".parse::<Slot>().unwrap().to_string(), "s12");
        for bad in ["s", "12", "s-1", "s1x", "S1", "s99999999999"] {
            assert!(bad.parse::<Slot>().is_err(), "{bad}");
        }
    }

    #[test]
    fn execution_ids_sort_by_their_time() {
        let execution_at = |ms| ExecutionId::new_at(crate::Timestamp(ms), [7; 16]);
        let early = execution_at(1_767_225_600_000);
        let late = execution_at(1_767_225_600_001);
        assert!(late > early && late.to_newest_first_key() < early.to_newest_first_key());
        assert_eq!(ExecutionId::from_newest_first_key(&early.to_newest_first_key()), Ok(early));
        assert_eq!(ExecutionId::parse(&early.to_string()), Ok(early));
        assert!(ExecutionId::from_newest_first_key("s0").is_err());
    }

    #[test]
    fn ids_refuse_bad_json() {
        assert!(serde_json::from_str::<TenantId>("\"a b\"").is_err());
    }
}
