//! One route: its handler and its description, side by side.

use axum::routing::MethodRouter;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::HttpState;

/// A route of the table. The router and the OpenAPI description are both made from it.
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// The operation id of OpenAPI. It is stable, because clients are generated from it.
    pub id: &'static str,
    pub summary: &'static str,
    /// The schema of the query.
    pub query: Option<SchemaOf>,
    /// The forms of body that the route accepts.
    pub body: Vec<BodyForm>,
    pub answers: Vec<AnswerForm>,
    /// Whether the route answers without a key.
    pub public: bool,
    pub handler: MethodRouter<HttpState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// Makes a schema, with the types it refers to as components.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Value;

/// One form of body that a route accepts.
pub struct BodyForm {
    pub content_type: &'static str,
    pub schema: SchemaOf,
    pub required: bool,
}

/// One form of answer that a route gives.
#[derive(Clone)]
pub struct AnswerForm {
    pub status: u16,
    pub content_type: &'static str,
    /// `None` for text.
    pub schema: Option<SchemaOf>,
    pub description: &'static str,
}

impl AnswerForm {
    pub fn json<T: JsonSchema>(status: u16, description: &'static str) -> Self {
        Self { status, content_type: "application/json", schema: Some(reference::<T>), description }
    }

    /// JSON of one of two types.
    pub fn either<A: JsonSchema, B: JsonSchema>(status: u16, description: &'static str) -> Self {
        let schema =
            |schemas: &mut SchemaGenerator| json!({"anyOf": [reference::<A>(schemas), reference::<B>(schemas)]});
        Self { status, content_type: "application/json", schema: Some(schema), description }
    }

    pub fn text(status: u16, content_type: &'static str, description: &'static str) -> Self {
        Self { status, content_type, schema: None, description }
    }
}

/// Returns a reference to the schema of a type, which becomes a component.
pub fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

/// Returns the whole schema of a type.
fn inline<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    T::json_schema(schemas).to_value()
}

impl Route {
    pub fn new(method: Method, path: &'static str, id: &'static str, handler: MethodRouter<HttpState>) -> Self {
        Self {
            method,
            path,
            id,
            summary: "",
            query: None,
            body: Vec::new(),
            answers: Vec::new(),
            public: false,
            handler,
        }
    }

    pub fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    pub fn public(self) -> Self {
        Self { public: true, ..self }
    }

    pub fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(inline::<T>), ..self }
    }

    pub fn body<T: JsonSchema>(mut self) -> Self {
        let content_type = "application/json";
        self.body.push(BodyForm { content_type, schema: reference::<T>, required: true });
        self
    }

    pub fn optional_body<T: JsonSchema>(mut self) -> Self {
        let content_type = "application/json";
        self.body.push(BodyForm { content_type, schema: reference::<T>, required: false });
        self
    }

    pub fn text_body(mut self) -> Self {
        self.body.push(BodyForm { content_type: "text/plain", schema: reference::<String>, required: false });
        self
    }

    pub fn answer(mut self, answer: AnswerForm) -> Self {
        self.answers.push(answer);
        self
    }
}
