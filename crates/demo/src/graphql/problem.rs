//! What can be wrong with a GraphQL request, as an entry of `errors`.
//! Invariant: every entry has a code in its extensions; one that belongs to a field has the field's path.

use serde_json::{Map, Value, json};

/// A place in the document, both numbers from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    ParseFailed,
    ValidationFailed,
    NoOperation,
    BadUserInput,
    NotFound,
    OutOfStock,
    Conflict,
    Forbidden,
    IdempotencyMismatch,
    TooComplex,
    Internal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    pub message: String,
    pub at: Option<At>,
    pub path: Option<Vec<Value>>,
}

impl Problem {
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), at: None, path: None }
    }

    pub fn at(self, at: At) -> Problem {
        Problem { at: Some(at), ..self }
    }

    pub fn json(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("message".to_owned(), self.message.clone().into());
        if let Some(At { line, column }) = self.at {
            entry.insert("locations".to_owned(), json!([{"line": line, "column": column}]));
        }
        if let Some(path) = &self.path {
            entry.insert("path".to_owned(), path.clone().into());
        }
        entry.insert("extensions".to_owned(), json!({"code": self.code.word()}));
        entry.into()
    }
}

impl Code {
    fn word(self) -> &'static str {
        match self {
            Code::ParseFailed => "GRAPHQL_PARSE_FAILED",
            Code::ValidationFailed => "GRAPHQL_VALIDATION_FAILED",
            Code::NoOperation => "OPERATION_RESOLUTION_FAILURE",
            Code::BadUserInput => "BAD_USER_INPUT",
            Code::NotFound => "NOT_FOUND",
            Code::OutOfStock => "OUT_OF_STOCK",
            Code::Conflict => "CONFLICT",
            Code::Forbidden => "FORBIDDEN",
            Code::IdempotencyMismatch => "IDEMPOTENCY_MISMATCH",
            Code::TooComplex => "QUERY_TOO_COMPLEX",
            Code::Internal => "INTERNAL_SERVER_ERROR",
        }
    }
}
