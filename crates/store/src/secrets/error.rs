//! The error of the encrypted store of secrets.
//! Invariant: each message says what to do, and holds neither a path nor anything that was in the store.

use std::io;

/// The size that one secret may have.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;
/// The size that the whole file may have. The file is read into memory at each call.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;

/// Why the encrypted store of secrets could not be used. The operator can act on each variant but the last one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "there is no key for the encrypted secrets; set TOKAMAK_SECRETS_KEY, or name a file with `secrets_key_file` in \
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
    #[error("secrets.enc was written by a newer version (format {found}, this one knows {known}); run that version")]
    UnknownVersion { found: u16, known: u16 },
    #[error("secrets.enc is too large ({found} bytes, {most} at most); remove secrets that are not used")]
    TooLarge { found: u64, most: u64 },
    #[error("`{name}` cannot be the name of a secret; {rule}")]
    Name { name: String, rule: &'static str },
    #[error("the value of `{name}` cannot be stored; {rule}")]
    Value { name: String, rule: &'static str },
    #[error("another process has been changing secrets.enc for {seconds} s; end it, or wait and try again")]
    Busy { seconds: u64 },
    #[error("there is no space left for secrets.enc; free some space")]
    Full(#[source] io::Error),
    #[error("secrets.enc cannot be {doing}; let this user read and write the data folder")]
    Io {
        doing: &'static str,
        #[source]
        cause: io::Error,
    },
    /// The system gave no memory or no randomness, or the cipher refused its input: a fault that the operator cannot
    /// correct.
    #[error("the secrets could not be encrypted; try again")]
    Crypto,
}

impl Error {
    /// Returns a stable code for programs that read errors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoKey => "secrets_no_key",
            Self::WrongKey => "secrets_wrong_key",
            Self::Truncated { .. } => "secrets_truncated",
            Self::Damaged { .. } => "secrets_damaged",
            Self::Foreign => "secrets_foreign",
            Self::UnknownVersion { .. } => "secrets_unknown_version",
            Self::TooLarge { .. } => "secrets_too_large",
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
