//! The failures of a call: those of the use case itself, and those of the way to it.
//! Invariant: `code` is stable and callers branch on it or on the variant; the words may change.

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The use case refused the request, or could not finish it.
    #[error(transparent)]
    Session(#[from] session::Error),
    /// The arguments do not fit the request.
    #[error("{0}")]
    BadArguments(String),
    /// The registry, as the caller sees it, has no API of this name.
    #[error("no API `{0}` here; GET /v1/registry lists them")]
    NoCatalog(String),
    /// The use case belongs to the operator, and this caller is a tenant.
    #[error("only the operator may ask for this")]
    NotOperator,
    /// The client no longer waits for the answer.
    #[error("the client asked to stop")]
    Withdrawn,
    /// The call hit a defect and panicked. Other calls go on.
    #[error("this call hit a defect of the server; its log has the place. The session is as it was")]
    Panicked,
}

impl Error {
    /// Returns the stable code that clients branch on.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Session(error) => error.code(),
            Error::BadArguments(_) => "bad_arguments",
            Error::NoCatalog(_) => "no_catalog",
            Error::NotOperator => "not_operator",
            Error::Withdrawn => "cancelled",
            Error::Panicked => "internal",
        }
    }

    /// Returns whether the fault is ours: logged in full, shown to the caller as one line.
    pub fn is_fault(&self) -> bool {
        match self {
            Error::Session(error) => error.is_fault(),
            // The panic hook has logged the place already.
            Error::Panicked => false,
            Error::BadArguments(_) | Error::NoCatalog(_) | Error::NotOperator | Error::Withdrawn => false,
        }
    }
}

impl From<session::JsError> for Error {
    fn from(error: session::JsError) -> Self {
        Error::Session(error.into())
    }
}
