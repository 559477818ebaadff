//! Operations in one form for Swagger 2.0 and OpenAPI 3: parameters, body and answer.
//! Invariant: reading an operation never fails. A part of the wrong type is handled as missing.

use serde_json::{Map, Value};

use super::Spec;

const NO_BODY_REASON: &str = "it answers with no body";

/// The HTTP method of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
    /// A method that a catalog cannot call: HEAD, OPTIONS or TRACE.
    Other(&'static str),
}

/// The part of a request that contains a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamLocation {
    Path,
    Query,
    Header,
    Cookie,
}

/// A parameter outside of the request body.
#[derive(Debug, Clone)]
pub struct Param<'a> {
    pub name: &'a str,
    pub location: ParamLocation,
    pub required: bool,
    pub schema: &'a Value,
    /// The encoding of several values: `form`, `deepObject`, … or Swagger 2.0's `csv`, `multi`, …
    pub style: &'a str,
    /// Whether each of several values is sent as a separate pair: `tag=a&tag=b`.
    pub explode: bool,
    pub description: &'a str,
    pub deprecated: bool,
}

/// A field of a form body.
#[derive(Debug, Clone, Copy)]
pub struct FormField<'a> {
    pub name: &'a str,
    pub schema: &'a Value,
    pub required: bool,
}

#[derive(Debug, Clone)]
pub enum RequestBody<'a> {
    None,
    /// A body with a media type and a schema.
    Content {
        media: &'a str,
        schema: &'a Value,
        required: bool,
    },
    /// The form fields of Swagger 2.0. A form of OpenAPI 3 is a `Content` instead.
    Form {
        multipart: bool,
        fields: Vec<FormField<'a>>,
    },
}

/// The declared body of a successful answer.
#[derive(Debug, Clone, Copy)]
pub enum DeclaredAnswer<'a> {
    /// JSON of this schema.
    Json(&'a Value),
    /// The specification declares no schema for the answer.
    Undeclared,
    /// The answer has this media type, which is not JSON.
    NotJson(&'a str),
    /// The answer has no body. The text is the reason that the report shows.
    Empty(&'a str),
}

/// The answer of an operation with what its response headers declare.
struct DeclaredResponse<'a> {
    answer: DeclaredAnswer<'a>,
    /// Whether the response declares a `Link` header, which can carry the URL of the next page.
    has_link_header: bool,
}

/// An operation as the specification declares it.
#[derive(Debug)]
pub struct Operation<'a> {
    pub path: &'a str,
    pub verb: Verb,
    pub id: &'a str,
    pub summary: &'a str,
    pub description: &'a str,
    pub tags: Vec<&'a str>,
    pub deprecated: bool,
    pub params: Vec<Param<'a>>,
    pub body: RequestBody<'a>,
    pub answer: DeclaredAnswer<'a>,
    /// Whether the answer has a `Link` header.
    pub has_link_header: bool,
    /// The `servers` of the operation, or else of its path. `None` means the servers of the specification.
    pub servers: Option<&'a Value>,
    /// The `security` of the operation. `None` means the `security` of the specification.
    pub security: Option<&'a Value>,
}

impl Verb {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "get" => Self::Get,
            "post" => Self::Post,
            "put" => Self::Put,
            "patch" => Self::Patch,
            "delete" => Self::Delete,
            "head" => Self::Other("HEAD"),
            "options" => Self::Other("OPTIONS"),
            "trace" => Self::Other("TRACE"),
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Other(word) => word,
        }
    }
}

impl Operation<'_> {
    /// Returns the label of the operation in reports: `GET /tickets/{number}`.
    pub fn label(&self) -> String {
        let path: String = self.path.chars().take(200).collect();
        format!("{} {path}", self.verb.word())
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

impl Spec {
    pub fn operations(&self) -> Vec<Operation<'_>> {
        let mut out = Vec::new();
        for (path, item) in self.map(&["paths"]).into_iter().flatten() {
            let item = self.follow(item);
            for (word, operation) in item.as_object().into_iter().flatten() {
                let Some(verb) = Verb::parse(word) else { continue };
                if operation.is_object() {
                    out.push(self.read_operation(path, verb, item, operation));
                }
            }
        }
        out
    }

    fn read_operation<'a>(&'a self, path: &'a str, verb: Verb, item: &'a Value, operation: &'a Value) -> Operation<'a> {
        let declared = self.declared_params(item, operation);
        let DeclaredResponse { answer, has_link_header } = self.read_response(operation);
        Operation {
            path,
            verb,
            id: text(operation, "operationId"),
            summary: text(operation, "summary"),
            description: text(operation, "description"),
            tags: list(operation, "tags").filter_map(Value::as_str).collect(),
            deprecated: operation.get("deprecated").and_then(Value::as_bool).unwrap_or(false),
            params: declared.iter().filter_map(|param| self.read_param(param)).collect(),
            body: self.read_body(operation, &declared),
            answer,
            has_link_header,
            servers: operation.get("servers").or_else(|| item.get("servers")),
            security: operation.get("security"),
        }
    }

    /// Returns the operation's parameters and the parameters of its path item. An operation's parameter replaces the path
    /// item's parameter of the same name and place.
    fn declared_params<'a>(&'a self, item: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
        let mut out: Vec<&Value> = list(operation, "parameters").map(|p| self.follow(p)).collect();
        for param in list(item, "parameters").map(|p| self.follow(p)) {
            let same = |other: &&Value| other.get("name") == param.get("name") && other.get("in") == param.get("in");
            if !out.iter().any(same) {
                out.push(param);
            }
        }
        out
    }

    fn read_param<'a>(&'a self, param: &'a Value) -> Option<Param<'a>> {
        let location = match text(param, "in") {
            "path" => ParamLocation::Path,
            "query" => ParamLocation::Query,
            "header" => ParamLocation::Header,
            "cookie" => ParamLocation::Cookie,
            _ => return None,
        };
        let name = param.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let content = param.get("content").and_then(Value::as_object).and_then(|c| c.values().next());
        let schema = match (param.get("schema"), content) {
            (Some(schema), _) => schema,
            (None, Some(content)) => content.get("schema").unwrap_or(&Value::Null),
            // In Swagger 2.0 the keys of the schema are directly in the parameter.
            (None, None) => param,
        };
        let style = if self.is_swagger { text(param, "collectionFormat") } else { text(param, "style") };
        let explode = param.get("explode").and_then(Value::as_bool);
        let form = style.is_empty() || style == "form";
        Some(Param {
            name,
            location,
            // A path parameter is always required: the path cannot be built without it.
            required: location == ParamLocation::Path
                || param.get("required").and_then(Value::as_bool).unwrap_or(false),
            schema,
            style,
            explode: explode.unwrap_or(!self.is_swagger && form && location == ParamLocation::Query),
            description: text(param, "description"),
            deprecated: param.get("deprecated").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    fn read_body<'a>(&'a self, operation: &'a Value, declared: &[&'a Value]) -> RequestBody<'a> {
        if self.is_swagger {
            return self.read_swagger_body(operation, declared);
        }
        let Some(body) = operation.get("requestBody").map(|body| self.follow(body)) else { return RequestBody::None };
        let required = body.get("required").and_then(Value::as_bool).unwrap_or(false);
        let Some(content) = body.get("content").and_then(Value::as_object) else { return RequestBody::None };
        match preferred_content(content) {
            Some((media, value)) => {
                let schema = self.follow(value).get("schema").unwrap_or(&Value::Null);
                RequestBody::Content { media, schema, required }
            }
            None => RequestBody::None,
        }
    }

    /// Returns the media types of `consumes` or `produces` (Swagger 2.0): those of the operation, else those of the
    /// specification.
    fn media_types<'a>(&'a self, operation: &'a Value, key: &str) -> Vec<&'a str> {
        let own = operation.get(key).and_then(Value::as_array);
        let media_types = own.or_else(|| self.root().get(key).and_then(Value::as_array));
        media_types.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn read_swagger_body<'a>(&'a self, operation: &'a Value, declared: &[&'a Value]) -> RequestBody<'a> {
        let consumes = self.media_types(operation, "consumes");
        if let Some(body) = declared.iter().find(|param| text(param, "in") == "body") {
            let media = consumes.iter().find(|media| is_json(media)).or(consumes.first()).copied();
            return RequestBody::Content {
                media: media.unwrap_or("application/json"),
                schema: body.get("schema").unwrap_or(&Value::Null),
                required: body.get("required").and_then(Value::as_bool).unwrap_or(false),
            };
        }
        let fields: Vec<FormField<'a>> = declared
            .iter()
            .filter(|param| text(param, "in") == "formData" && !text(param, "name").is_empty())
            .map(|param| FormField {
                name: text(param, "name"),
                schema: param,
                required: param.get("required").and_then(Value::as_bool).unwrap_or(false),
            })
            .collect();
        if fields.is_empty() {
            return RequestBody::None;
        }
        let has_file = fields.iter().any(|field| text(field.schema, "type") == "file");
        let multipart = has_file || consumes.first().is_some_and(|media| media.starts_with("multipart/"));
        RequestBody::Form { multipart, fields }
    }

    /// Returns the first successful answer with JSON, else the first successful answer.
    fn read_response<'a>(&'a self, operation: &'a Value) -> DeclaredResponse<'a> {
        let Some(responses) = operation.get("responses").and_then(Value::as_object) else {
            return DeclaredResponse { answer: DeclaredAnswer::Undeclared, has_link_header: false };
        };
        let mut codes: Vec<&String> = responses.keys().filter(|code| code.starts_with('2')).collect();
        codes.sort_unstable();
        // `default` describes a success only if no code from 200 to 299 is declared.
        if codes.is_empty() {
            codes.extend(responses.keys().filter(|code| *code == "default"));
        }
        let mut first: Option<DeclaredResponse<'a>> = None;
        for code in codes {
            let Some(response) = responses.get(code).map(|response| self.follow(response)) else { continue };
            let headers = response.get("headers").and_then(Value::as_object);
            let has_link_header =
                headers.is_some_and(|headers| headers.keys().any(|name| name.eq_ignore_ascii_case("link")));
            let response = DeclaredResponse { answer: self.read_content(operation, code, response), has_link_header };
            if matches!(response.answer, DeclaredAnswer::Json(_)) {
                return response;
            }
            first.get_or_insert(response);
        }
        let redirects = responses.keys().any(|code| code.starts_with('3'));
        let reason = if redirects { "it answers with a redirect" } else { NO_BODY_REASON };
        let without_success =
            if responses.is_empty() { DeclaredAnswer::Undeclared } else { DeclaredAnswer::Empty(reason) };
        first.unwrap_or(DeclaredResponse { answer: without_success, has_link_header: false })
    }

    fn read_content<'a>(&'a self, operation: &'a Value, code: &str, response: &'a Value) -> DeclaredAnswer<'a> {
        // Answers with these codes often have no body, so a response without declared content has none.
        let may_be_empty = matches!(code, "204" | "205" | "202" | "201");
        if self.is_swagger {
            let produces = self.media_types(operation, "produces");
            return match response.get("schema") {
                Some(schema) if text(schema, "type") == "file" => DeclaredAnswer::NotJson("a file"),
                Some(schema) if produces.is_empty() || produces.iter().any(|media| is_json(media)) => {
                    DeclaredAnswer::Json(schema)
                }
                Some(_) => DeclaredAnswer::NotJson(produces.first().copied().unwrap_or_default()),
                None if may_be_empty => DeclaredAnswer::Empty(NO_BODY_REASON),
                None => DeclaredAnswer::Undeclared,
            };
        }
        let Some(content) = response.get("content").and_then(Value::as_object).filter(|c| !c.is_empty()) else {
            return if may_be_empty { DeclaredAnswer::Empty(NO_BODY_REASON) } else { DeclaredAnswer::Undeclared };
        };
        match content.iter().find(|(media, _)| is_json(media)) {
            Some((_, value)) => match self.follow(value).get("schema") {
                Some(schema) => DeclaredAnswer::Json(schema),
                None => DeclaredAnswer::Undeclared,
            },
            None => DeclaredAnswer::NotJson(content.keys().next().map(String::as_str).unwrap_or_default()),
        }
    }
}

/// Returns whether a media type is JSON or a wildcard.
fn is_json(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.ends_with("json") || essence == "*/*" || essence == "application/*"
}

/// Returns the media type with the best support in catalogs: JSON, then forms, then anything else.
fn preferred_content(content: &Map<String, Value>) -> Option<(&str, &Value)> {
    let rank = |media: &str| match media.split(';').next().unwrap_or_default().trim() {
        "application/json" => 0,
        media if is_json(media) => 1,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        _ => 4,
    };
    content.iter().map(|(media, value)| (media.as_str(), value)).min_by_key(|(media, _)| rank(media))
}
