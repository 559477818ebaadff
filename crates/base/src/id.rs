//! Names of things that outlive a call.
//! Invariant: an id that exists is well formed; text from outside becomes an id only through `parse`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use uuid::Uuid;

/// Why a text is not the id it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("an id must not be empty")]
    Empty,
    #[error("an id has at most {max} characters, this one has {found}")]
    TooLong { max: usize, found: usize },
    #[error("`{0}` is not allowed in an id; use letters, digits, `-`, `_` and `.`")]
    Character(char),
    #[error("not a UUID: {0}")]
    NotUuid(String),
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        // why: an id is copied for every step and every row that names it, and a short one is copied in place.
        pub struct $name(SmolStr);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, IdError> {
                if text.is_empty() {
                    return Err(IdError::Empty);
                }
                let found = text.chars().count();
                if found > $max {
                    return Err(IdError::TooLong { max: $max, found });
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
            /// Made from 16 random bytes; the randomness comes from `ports::Entropy`.
            pub fn from_random(bytes: [u8; 16]) -> Self {
                Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
            }

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
    /// Whose data a row is. On every row of the store and on every reference to a blob.
    TenantId,
    64
);
name_id!(
    /// A catalog's id in the registry (`demo`, `github`).
    CatalogId,
    64
);
name_id!(
    /// Who is calling within a tenant: what a slot belongs to when a connection has no transport session.
    Principal,
    128
);
name_id!(
    /// One incoming request, the same in every log line it causes.
    RequestId,
    64
);
uuid_id!(
    /// The canonical id of a logical session; works from any connection.
    LogicalSessionId
);
uuid_id!(
    /// One symbol space over pinned catalogs.
    ExecuteSessionId
);
uuid_id!(
    /// One run of a program; unique to the run, so reading the same thing twice keeps both results.
    RunId
);

uuid_id!(
    /// One run of JavaScript.
    ExecutionId
);
uuid_id!(
    /// One process among those that share a store.
    InstanceId
);

impl ExecutionId {
    /// Later ones are larger.
    pub fn at(now: crate::Timestamp, random: [u8; 16]) -> Self {
        let mut tail = [0; 10];
        tail.copy_from_slice(&random[6..]);
        let ms = u64::try_from(now.0).unwrap_or_default();
        Self(uuid::Builder::from_unix_timestamp_millis(ms, &tail).into_uuid())
    }

    /// The id as a key of which the latest is the smallest.
    pub fn newest_first(&self) -> String {
        format!("{:032x}", !self.0.as_u128())
    }

    /// From such a key.
    pub fn from_newest_first(key: &str) -> Result<Self, IdError> {
        let bits = u128::from_str_radix(key, 16).map_err(|_| IdError::NotUuid(key.chars().take(64).collect()))?;
        Ok(Self(Uuid::from_u128(!bits)))
    }
}

impl TenantId {
    /// The tenant of a server without auth, which only listens on loopback.
    pub fn local() -> Self {
        Self(SmolStr::new_static("local"))
    }
}

impl Principal {
    /// The only principal of a server without auth.
    pub fn local() -> Self {
        Self(SmolStr::new_static("local"))
    }
}

/// A connection's short name for a logical session: `s0`, `s1`, …
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot(pub u32);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a slot; a slot is `s` and a number, like `s0`")]
pub struct SlotError(String);

impl FromStr for Slot {
    type Err = SlotError;
    fn from_str(text: &str) -> Result<Self, SlotError> {
        let digits = text.strip_prefix('s').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
        digits.and_then(|d| d.parse().ok()).map(Slot).ok_or_else(|| SlotError(text.chars().take(64).collect()))
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
    fn hostile_names_are_refused() {
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
    fn executions_sort_by_the_time_they_were_made() {
        let at = |ms| ExecutionId::at(crate::Timestamp(ms), [7; 16]);
        let (early, late) = (at(1_767_225_600_000), at(1_767_225_600_001));
        assert!(late > early && late.newest_first() < early.newest_first());
        assert_eq!(ExecutionId::from_newest_first(&early.newest_first()), Ok(early));
        assert_eq!(ExecutionId::parse(&early.to_string()), Ok(early));
        assert!(ExecutionId::from_newest_first("s0").is_err());
    }

    #[test]
    fn ids_refuse_bad_json() {
        assert!(serde_json::from_str::<TenantId>("\"a b\"").is_err());
    }
}
