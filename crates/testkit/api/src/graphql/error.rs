//! The codes of GraphQL errors, and an error as an entry of `errors`.

use async_graphql::{ErrorExtensionValues, Pos, ServerError};
use serde_json::{Value, json};

/// The codes in the extensions of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    ParseFailed,
    ValidationFailed,
    /// The request does not say which operation of the document it wants.
    NoOperation,
    BadUserInput,
    NotFound,
    OutOfStock,
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    TooComplex,
    /// An error of async-graphql while fields are resolved.
    Internal,
}

impl ErrorCode {
    fn word(self) -> &'static str {
        match self {
            ErrorCode::ParseFailed => "GRAPHQL_PARSE_FAILED",
            ErrorCode::ValidationFailed => "GRAPHQL_VALIDATION_FAILED",
            ErrorCode::NoOperation => "OPERATION_RESOLUTION_FAILURE",
            ErrorCode::BadUserInput => "BAD_USER_INPUT",
            ErrorCode::NotFound => "NOT_FOUND",
            ErrorCode::OutOfStock => "OUT_OF_STOCK",
            ErrorCode::Conflict => "CONFLICT",
            ErrorCode::Forbidden => "FORBIDDEN",
            ErrorCode::IdempotencyMismatch => "IDEMPOTENCY_MISMATCH",
            ErrorCode::TooComplex => "QUERY_TOO_COMPLEX",
            ErrorCode::Internal => "INTERNAL_SERVER_ERROR",
        }
    }

    /// Returns the error of a resolver. async-graphql adds the field's path and location.
    pub fn field_error(self, message: impl Into<String>) -> async_graphql::Error {
        let mut error = async_graphql::Error::new(message);
        error.extensions.get_or_insert_with(ErrorExtensionValues::default).set("code", self.word());
        error
    }

    /// Returns the error of a request that is not executed, or of a field without a resolver.
    pub fn server_error(self, message: impl Into<String>, position: Option<Pos>) -> ServerError {
        let mut error = ServerError::new(message, position);
        error.extensions.get_or_insert_with(ErrorExtensionValues::default).set("code", self.word());
        error
    }
}

/// Returns an entry of `errors`. `default` is the code of an error that async-graphql made itself.
pub fn error_json(error: &ServerError, default: ErrorCode) -> Value {
    let mut entry = json!(error);
    if entry["extensions"]["code"].is_null() {
        entry["extensions"] = json!({"code": default.word()});
    }
    entry
}
