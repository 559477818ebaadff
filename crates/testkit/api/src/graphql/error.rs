//! The codes of GraphQL errors, and the JSON of an entry of `errors`.

use async_graphql::{ErrorExtensionValues, Pos, ServerError};
use serde_json::{Value, json};

/// The code of an error, which is in its `extensions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    ParseFailed,
    ValidationFailed,
    /// The document has several operations, and the request does not name one of them.
    NoOperation,
    BadUserInput,
    NotFound,
    OutOfStock,
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    TooComplex,
    /// async-graphql failed while it resolved fields.
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

    /// Returns an error for a resolver. async-graphql adds the path and the location of the field.
    pub fn field_error(self, message: impl Into<String>) -> async_graphql::Error {
        let mut error = async_graphql::Error::new(message);
        error.extensions.get_or_insert_with(ErrorExtensionValues::default).set("code", self.word());
        error
    }

    /// Returns an error for a request that is not executed, or for a field whose resolver does not run.
    pub fn server_error(self, message: impl Into<String>, position: Option<Pos>) -> ServerError {
        let mut error = ServerError::new(message, position);
        error.extensions.get_or_insert_with(ErrorExtensionValues::default).set("code", self.word());
        error
    }
}

/// Returns an error as an entry of `errors`. `default` is the code for an error of async-graphql, which has no code.
pub fn error_json(error: &ServerError, default: ErrorCode) -> Value {
    let mut entry = json!(error);
    if entry["extensions"]["code"].is_null() {
        entry["extensions"] = json!({"code": default.word()});
    }
    entry
}
