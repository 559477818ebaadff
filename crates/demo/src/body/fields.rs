//! Checks the fields of a write and gathers everything that is wrong with them before refusing any.
//! Invariant: `finish` passes only if every given field was read and none was refused, so no field is ignored by mistake.

use std::ops::RangeInclusive;

use axum::body::Bytes;
use axum::http::HeaderMap;
use serde_json::{Map, Value};

use super::{FORM, MULTIPART, content_type, json, pairs, parts};
use crate::error::{ApiError, FieldError};
use crate::world::Choice;

pub struct Fields {
    given: Map<String, Value>,
    /// A form knows only text: numbers in digits, lists by repetition.
    is_form: bool,
    wrong: Vec<FieldError>,
}

impl Fields {
    /// From a JSON object.
    pub fn from_json(headers: &HeaderMap, body: &[u8]) -> Result<Fields, ApiError> {
        Ok(Fields { given: json(headers, body)?, is_form: false, wrong: Vec::new() })
    }

    /// From a form, urlencoded or multipart.
    pub fn from_form(headers: &HeaderMap, body: &Bytes) -> Result<Fields, ApiError> {
        let pairs = match content_type(headers).as_str() {
            FORM => pairs(body)?,
            MULTIPART => texts(headers, body)?,
            _ => return Err(ApiError::WrongBodyType { expected: FORM }),
        };
        let mut given: Map<String, Value> = Map::new();
        for (name, value) in pairs {
            match given.get_mut(&name) {
                Some(Value::Array(values)) => values.push(value.into()),
                _ => drop(given.insert(name, Value::Array(vec![value.into()]))),
            }
        }
        Ok(Fields { given, is_form: true, wrong: Vec::new() })
    }

    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// `None` when the field is absent or null, or has been refused.
    pub fn text(&mut self, name: &str, longest: usize) -> Option<String> {
        match self.take(name)? {
            Value::String(text) if text.chars().count() <= longest => Some(text),
            Value::String(_) => self.refuse(name, &format!("must have at most {longest} characters")),
            Value::Null => None,
            _ => self.refuse(name, "must be text"),
        }
    }

    pub fn required_text(&mut self, name: &str, longest: usize) -> Option<String> {
        match self.text(name, longest) {
            Some(text) if text.trim().is_empty() => self.refuse(name, "must not be empty"),
            None if !self.is_refused(name) => self.refuse(name, "is required"),
            text => text,
        }
    }

    /// A text that may be taken away: `Some(None)` for null.
    pub fn clearable(&mut self, name: &str, longest: usize) -> Option<Option<String>> {
        match self.given.get(name) {
            Some(Value::Null) => {
                self.given.remove(name);
                Some(None)
            }
            _ => self.text(name, longest).map(Some),
        }
    }

    pub fn integer(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let number = match self.take(name)? {
            Value::Null => return None,
            Value::String(digits) if self.is_form => digits.parse().ok(),
            value => value.as_u64(),
        };
        match number {
            Some(number) if range.contains(&number) => Some(number),
            _ => self.refuse(name, &format!("must be an integer from {} to {}", range.start(), range.end())),
        }
    }

    pub fn choice<C: Choice>(&mut self, name: &str) -> Option<C> {
        let text = self.text(name, usize::MAX)?;
        match C::ALL.iter().find(|choice| choice.word() == text) {
            Some(choice) => Some(*choice),
            None => {
                let words: Vec<&str> = C::ALL.iter().map(|choice| choice.word()).collect();
                self.refuse(name, &format!("must be one of {}", words.join(", ")))
            }
        }
    }

    pub fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let values = match self.given.remove(name)? {
            Value::Array(values) => values,
            Value::Null => return None,
            _ => return self.refuse(name, "must be a list of texts"),
        };
        let texts: Option<Vec<String>> = values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
        texts.or_else(|| self.refuse(name, "must be a list of texts"))
    }

    /// Notes what is wrong; gives `None` so that a reader can end with it.
    pub fn refuse<T>(&mut self, name: &str, message: &str) -> Option<T> {
        self.wrong.push(FieldError { field: name.to_owned(), message: message.to_owned() });
        None
    }

    pub fn is_refused(&self, name: &str) -> bool {
        self.wrong.iter().any(|wrong| wrong.field == name)
    }

    /// What has been refused so far, when reading further makes no sense.
    pub fn refused(self) -> ApiError {
        ApiError::Invalid { fields: self.wrong }
    }

    pub fn finish(mut self) -> Result<(), ApiError> {
        for name in self.given.keys() {
            self.wrong.push(FieldError { field: name.clone(), message: "is not a field of this".to_owned() });
        }
        if self.wrong.is_empty() { Ok(()) } else { Err(ApiError::Invalid { fields: self.wrong }) }
    }

    /// One value; of a form, which may repeat, the last.
    fn take(&mut self, name: &str) -> Option<Value> {
        let value = self.given.remove(name)?;
        match value {
            Value::Array(mut values) if self.is_form => values.pop(),
            value => Some(value),
        }
    }
}

fn texts(headers: &HeaderMap, body: &Bytes) -> Result<Vec<(String, String)>, ApiError> {
    let not_text = |_| ApiError::BadBody { reason: "a part is not UTF-8".to_owned() };
    let text = |part: super::Part| Ok((part.name, String::from_utf8(part.body.to_vec()).map_err(not_text)?));
    parts(headers, body)?.into_iter().map(text).collect()
}
