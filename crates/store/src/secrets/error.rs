//! The error type of the encrypted store of secrets.
//! Invariant: each message names the operator's next action, and contains neither a path nor any content of the store.

use std::io;

/// The largest size of one secret in bytes.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;
/// The largest size of `secrets.enc` in bytes. It is bounded because the file is read into memory at each call.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// The reason for which the encrypted store of secrets could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no key for the encrypted secrets is set; set TOKAMAK_SECRETS_KEY, or name a file with `secrets_key_file` in \
         the settings"
    )]
    NoKey,
    #[error(
        "the key does not open secrets.enc; give the key it was made with (TOKAMAK_SECRETS_KEY or `secrets_key_file`), \
         or move secrets.enc away and set the secrets again"
    )]
    WrongKey,
    #[error(
        "secrets.enc is cut off ({found} bytes of {expected}); restore it from a backup, or move it away and set the \
         secrets again"
    )]
    Truncated { found: u64, expected: u64 },
    #[error("secrets.enc is damaged ({what}); restore it from a backup, or move it away and set the secrets again")]
    Damaged { what: &'static str },
    #[error("secrets.enc is not a store of secrets; move it out of the data folder")]
    Foreign,
    #[error(
        "secrets.enc was written by a newer version of Tokamak (format {found}; this version knows {known}); run the newer version"
    )]
    UnknownVersion { found: u16, known: u16 },
    #[error("secrets.enc is too large ({found} bytes; at most {most} are allowed); remove unused secrets")]
    TooLarge { found: u64, most: u64 },
    #[error(
        "secret-bindings.json is damaged or was written by a newer version, so no secret is bound by it; restore it, or \
         remove it and bind the secrets again (`tokamak secret bind NAME ORIGIN`)"
    )]
    Bindings,
    #[error("`{name}` cannot be the name of a secret; {rule}")]
    Name { name: String, rule: &'static str },
    #[error("the value of `{name}` cannot be stored; {rule}")]
    Value { name: String, rule: &'static str },
    #[error("another process has locked secrets.enc for {seconds} s; end that process, or wait and try again")]
    Busy { seconds: u64 },
    #[error("the disk has no space left for secrets.enc; free some space")]
    Full(#[source] io::Error),
    #[error("secrets.enc cannot be {doing}; give this user read and write permission for the data folder")]
    Io {
        doing: &'static str,
        #[source]
        cause: io::Error,
    },
    /// The system returned no memory or no random bytes, or the cipher refused its input. The operator cannot correct
    /// this.
    #[error("the secrets could not be encrypted; try again")]
    Crypto,
}

impl Error {
    /// Returns the error code, which stays the same across versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoKey => "secrets_no_key",
            Self::WrongKey => "secrets_wrong_key",
            Self::Truncated { .. } => "secrets_truncated",
            Self::Damaged { .. } => "secrets_damaged",
            Self::Foreign => "secrets_foreign",
            Self::UnknownVersion { .. } => "secrets_unknown_version",
            Self::TooLarge { .. } => "secrets_too_large",
            Self::Bindings => "secrets_bindings",
            Self::Name { .. } => "secret_name",
            Self::Value { .. } => "secret_value",
            Self::Busy { .. } => "secrets_busy",
            Self::Full(_) => "secrets_full",
            Self::Io { .. } => "secrets_io",
            Self::Crypto => "secrets_crypto",
        }
    }

    pub(super) fn io(doing: &'static str, cause: io::Error) -> Self {
        if crate::folder::is_full(&cause) { Self::Full(cause) } else { Self::Io { doing, cause } }
    }
}
