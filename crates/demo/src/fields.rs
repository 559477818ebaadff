//! Reads the fields in the body of a write, and collects all mistakes in them.
//! Invariant: `finish` succeeds only if every field was read and no field was refused, so no field is ignored by mistake.

use std::ops::RangeInclusive;

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use crate::error::{ApiError, FieldError};
use crate::request::parse_json;
use crate::world::Choice;

/// The fields of a body. Each reading method removes its field, and returns `None` if the field is absent, null or refused.
pub struct Fields {
    /// The fields that no method has read yet.
    unread: Map<String, Value>,
    /// The mistakes that were found so far.
    mistakes: Vec<FieldError>,
}

impl Fields {
    pub fn new(fields: Map<String, Value>) -> Fields {
        Fields { unread: fields, mistakes: Vec::new() }
    }

    /// Reads the fields of a JSON object.
    pub fn from_json(headers: &HeaderMap, body: &[u8]) -> Result<Fields, ApiError> {
        parse_json(headers, body).map(Fields::new)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    pub(crate) fn text(&mut self, name: &str, max_length: usize) -> Option<String> {
        match self.unread.remove(name)? {
            Value::String(text) if text.chars().count() <= max_length => Some(text),
            Value::String(_) => self.refuse(name, &format!("must have at most {max_length} characters")),
            Value::Null => None,
            _ => self.refuse(name, "must be text"),
        }
    }

    pub fn required_text(&mut self, name: &str, max_length: usize) -> Option<String> {
        match self.text(name, max_length) {
            Some(text) if text.trim().is_empty() => self.refuse(name, "must not be empty"),
            None if !self.is_refused(name) => self.refuse(name, "is required"),
            text => text,
        }
    }

    /// Reads a text that a client may remove. Null in the body means removal and is returned as `Some(None)`.
    pub(crate) fn removable_text(&mut self, name: &str) -> Option<Option<String>> {
        match self.unread.get(name) {
            Some(Value::Null) => {
                self.unread.remove(name);
                Some(None)
            }
            _ => self.text(name, usize::MAX).map(Some),
        }
    }

    pub(crate) fn integer(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        match self.unread.remove(name)? {
            Value::Null => None,
            value => match value.as_u64() {
                Some(number) if range.contains(&number) => Some(number),
                _ => self.refuse(name, &format!("must be an integer from {} to {}", range.start(), range.end())),
            },
        }
    }

    pub(crate) fn choice<C: Choice>(&mut self, name: &str) -> Option<C> {
        let text = self.text(name, usize::MAX)?;
        match C::ALL.iter().find(|choice| choice.word() == text) {
            Some(choice) => Some(*choice),
            None => {
                let words: Vec<&str> = C::ALL.iter().map(|choice| choice.word()).collect();
                self.refuse(name, &format!("must be one of {}", words.join(", ")))
            }
        }
    }

    pub(crate) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let values = match self.unread.remove(name)? {
            Value::Array(values) => values,
            Value::Null => return None,
            _ => return self.refuse(name, "must be a list of texts"),
        };
        let texts: Option<Vec<String>> = values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        texts.or_else(|| self.refuse(name, "must be a list of texts"))
    }

    /// Records a mistake in a field. Returns `None`, so that a reading method can end with this call.
    pub fn refuse<T>(&mut self, name: &str, message: &str) -> Option<T> {
        self.mistakes.push(FieldError { field: name.to_owned(), message: message.to_owned() });
        None
    }

    pub fn is_refused(&self, name: &str) -> bool {
        self.mistakes.iter().any(|mistake| mistake.field == name)
    }

    /// Returns an error with the mistakes so far, for a caller that cannot read the other fields.
    pub fn into_error(self) -> ApiError {
        ApiError::Invalid { fields: self.mistakes }
    }

    /// Fails if there is a mistake, or a field that no method has read.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
        for name in self.unread.keys() {
            self.mistakes.push(FieldError { field: name.clone(), message: "is not a field of this".to_owned() });
        }
        if self.mistakes.is_empty() { Ok(()) } else { Err(self.into_error()) }
    }
}
