//! One route: its handler and its description, side by side.

use axum::routing::MethodRouter;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::HttpState;

/// A route of the table. The router and the OpenAPI description are both made from it.
pub struct Route {
    pub method: Method,
    /// The path, with the names of its parameters in braces.
    pub path: &'static str,
    /// The operation id of OpenAPI. It is stable, because clients are generated from it.
    pub id: &'static str,
    /// One sentence for the OpenAPI description.
    pub summary: &'static str,
    /// The schema of the query.
    pub query: Option<SchemaOf>,
    /// The forms of body that the route accepts.
    pub body: Vec<BodyForm>,
    /// The forms of answer that the route gives, apart from errors.
    pub answers: Vec<AnswerForm>,
    /// Whether the route answers without a key.
    pub public: bool,
    /// The function that answers.
    pub handler: MethodRouter<HttpState>,
}

/// The method of a route. No route has another.
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
    /// Whether a request without a body is refused.
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
    /// Returns the form of a JSON answer of one type.
    pub fn json<T: JsonSchema>(status: u16, description: &'static str) -> Self {
        Self { status, content_type: "application/json", schema: Some(reference::<T>), description }
    }

    /// Returns the form of a JSON answer of one of two types.
    pub fn either<A: JsonSchema, B: JsonSchema>(status: u16, description: &'static str) -> Self {
        let schema =
            |schemas: &mut SchemaGenerator| json!({"anyOf": [reference::<A>(schemas), reference::<B>(schemas)]});
        Self { status, content_type: "application/json", schema: Some(schema), description }
    }

    /// Returns the form of an answer that is text.
    pub fn text(status: u16, content_type: &'static str, description: &'static str) -> Self {
        Self { status, content_type, schema: None, description }
    }
}

/// Returns a reference to the schema of a type, which becomes a component.
pub fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

/// Returns the whole schema of a type. A query is described member by member, so it cannot be a reference.
fn whole_schema<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    T::json_schema(schemas).to_value()
}

impl Route {
    /// Returns a route without body, query and answers, which the functions below add.
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

    /// Adds the sentence for the OpenAPI description.
    pub fn summary(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Marks the route as answering without a key. `http::auth` has the list that decides it.
    pub fn public(self) -> Self {
        Self { public: true, ..self }
    }

    /// Describes the query by the type that the handler reads.
    pub fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(whole_schema::<T>), ..self }
    }

    /// Describes the JSON body by the type that the handler reads.
    pub fn body<T: JsonSchema>(mut self) -> Self {
        self.body.push(BodyForm { content_type: "application/json", schema: reference::<T>, required: true });
        self
    }

    /// Describes a JSON body that may be left out.
    pub fn optional_body<T: JsonSchema>(mut self) -> Self {
        self.body.push(BodyForm { content_type: "application/json", schema: reference::<T>, required: false });
        self
    }

    /// Describes a body of plain text, as an alternative to JSON.
    pub fn text_body(mut self) -> Self {
        self.body.push(BodyForm { content_type: "text/plain", schema: reference::<String>, required: false });
        self
    }

    /// Adds a form of answer.
    pub fn answer(mut self, answer: AnswerForm) -> Self {
        self.answers.push(answer);
        self
    }
}
