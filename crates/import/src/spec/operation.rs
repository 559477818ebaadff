//! One operation, the same for Swagger 2.0 and OpenAPI 3: its parameters, its body, its answer.
//! Invariant: what is missing or of the wrong type is as if it were not there; nothing here fails.

use serde_json::{Map, Value};

use super::Spec;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
    /// HEAD, OPTIONS, TRACE.
    Other(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum In {
    Path,
    Query,
    Header,
    Cookie,
}

#[derive(Debug, Clone)]
pub struct Param<'a> {
    pub name: &'a str,
    pub place: In,
    pub required: bool,
    pub schema: &'a Value,
    /// `form`, `deepObject`, … or Swagger 2.0's `csv`, `multi`, …
    pub style: &'a str,
    pub explode: bool,
    pub about: &'a str,
    pub deprecated: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct FormField<'a> {
    pub name: &'a str,
    pub schema: &'a Value,
    pub required: bool,
}

#[derive(Debug, Clone)]
pub enum Body<'a> {
    None,
    Content { media: &'a str, schema: &'a Value, required: bool },
    Form { multipart: bool, fields: Vec<FormField<'a>> },
}

#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    Json(&'a Value),
    /// Something, the specification does not say what.
    Unsaid,
    /// Not JSON.
    Other(&'a str),
    Empty(&'a str),
}

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
    pub body: Body<'a>,
    pub answer: Answer<'a>,
    /// Whether the answer has a `Link` header.
    pub links: bool,
    /// Its own `servers`, or those of its path.
    pub servers: Option<&'a Value>,
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
    /// `GET /tickets/{number}`
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
                    out.push(self.operation(path, verb, item, operation));
                }
            }
        }
        out
    }

    fn operation<'a>(&'a self, path: &'a str, verb: Verb, item: &'a Value, operation: &'a Value) -> Operation<'a> {
        let declared = self.declared(item, operation);
        let (answer, links) = self.answer(operation);
        Operation {
            path,
            verb,
            id: text(operation, "operationId"),
            summary: text(operation, "summary"),
            description: text(operation, "description"),
            tags: list(operation, "tags").filter_map(Value::as_str).collect(),
            deprecated: operation.get("deprecated").and_then(Value::as_bool).unwrap_or(false),
            params: declared.iter().filter_map(|param| self.param(param)).collect(),
            body: self.body(operation, &declared),
            answer,
            links,
            servers: operation.get("servers").or_else(|| item.get("servers")),
            security: operation.get("security"),
        }
    }

    /// The operation's own parameters, and those of its path that it does not declare again.
    fn declared<'a>(&'a self, item: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
        let mut out: Vec<&Value> = list(operation, "parameters").map(|p| self.follow(p)).collect();
        for param in list(item, "parameters").map(|p| self.follow(p)) {
            let same = |other: &&Value| other.get("name") == param.get("name") && other.get("in") == param.get("in");
            if !out.iter().any(same) {
                out.push(param);
            }
        }
        out
    }

    fn param<'a>(&'a self, param: &'a Value) -> Option<Param<'a>> {
        let place = match text(param, "in") {
            "path" => In::Path,
            "query" => In::Query,
            "header" => In::Header,
            "cookie" => In::Cookie,
            _ => return None,
        };
        let name = param.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let content = param.get("content").and_then(Value::as_object).and_then(|c| c.values().next());
        let schema = match (param.get("schema"), content) {
            (Some(schema), _) => schema,
            (None, Some(content)) => content.get("schema").unwrap_or(&Value::Null),
            // Swagger 2.0 says the type beside the name.
            (None, None) => param,
        };
        let style = if self.old { text(param, "collectionFormat") } else { text(param, "style") };
        let explode = param.get("explode").and_then(Value::as_bool);
        let form = style.is_empty() || style == "form";
        Some(Param {
            name,
            place,
            required: place == In::Path || param.get("required").and_then(Value::as_bool).unwrap_or(false),
            schema,
            style,
            explode: explode.unwrap_or(!self.old && form && place == In::Query),
            about: text(param, "description"),
            deprecated: param.get("deprecated").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    fn body<'a>(&'a self, operation: &'a Value, declared: &[&'a Value]) -> Body<'a> {
        if self.old {
            return self.old_body(operation, declared);
        }
        let Some(body) = operation.get("requestBody").map(|body| self.follow(body)) else { return Body::None };
        let required = body.get("required").and_then(Value::as_bool).unwrap_or(false);
        let Some(content) = body.get("content").and_then(Value::as_object) else { return Body::None };
        match best(content) {
            Some((media, value)) => {
                let schema = self.follow(value).get("schema").unwrap_or(&Value::Null);
                Body::Content { media, schema, required }
            }
            None => Body::None,
        }
    }

    fn consumes<'a>(&'a self, operation: &'a Value, key: &str) -> Vec<&'a str> {
        let own = operation.get(key).and_then(Value::as_array);
        let all = own.or_else(|| self.root().get(key).and_then(Value::as_array));
        all.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn old_body<'a>(&'a self, operation: &'a Value, declared: &[&'a Value]) -> Body<'a> {
        let consumes = self.consumes(operation, "consumes");
        if let Some(body) = declared.iter().find(|param| text(param, "in") == "body") {
            let media = consumes.iter().find(|media| is_json(media)).or(consumes.first()).copied();
            return Body::Content {
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
            return Body::None;
        }
        let file = fields.iter().any(|field| text(field.schema, "type") == "file");
        let multipart = file || consumes.first().is_some_and(|media| media.starts_with("multipart/"));
        Body::Form { multipart, fields }
    }

    fn answer<'a>(&'a self, operation: &'a Value) -> (Answer<'a>, bool) {
        let Some(responses) = operation.get("responses").and_then(Value::as_object) else {
            return (Answer::Unsaid, false);
        };
        let good = |code: &str| code.starts_with('2');
        let mut codes: Vec<&String> = responses.keys().filter(|code| good(code)).collect();
        codes.sort_unstable();
        codes.extend(responses.keys().filter(|code| *code == "default").filter(|_| codes_are_few(responses)));
        let mut first: Option<(Answer<'a>, bool)> = None;
        for code in codes {
            let Some(response) = responses.get(code).map(|response| self.follow(response)) else { continue };
            let links = response.get("headers").and_then(Value::as_object);
            let links = links.is_some_and(|headers| headers.keys().any(|name| name.eq_ignore_ascii_case("link")));
            let answer = self.content(operation, code, response);
            if matches!(answer, Answer::Json(_)) {
                return (answer, links);
            }
            first.get_or_insert((answer, links));
        }
        let redirect = responses.keys().any(|code| code.starts_with('3'));
        let nothing = if redirect { "it answers with a redirect" } else { "it answers with no body" };
        first.unwrap_or((if responses.is_empty() { Answer::Unsaid } else { Answer::Empty(nothing) }, false))
    }

    fn content<'a>(&'a self, operation: &'a Value, code: &str, response: &'a Value) -> Answer<'a> {
        let silent = matches!(code, "204" | "205" | "202" | "201");
        let nothing = "it answers with no body";
        if self.old {
            let produces = self.consumes(operation, "produces");
            return match response.get("schema") {
                Some(schema) if text(schema, "type") == "file" => Answer::Other("a file"),
                Some(schema) if produces.is_empty() || produces.iter().any(|media| is_json(media)) => {
                    Answer::Json(schema)
                }
                Some(_) => Answer::Other(produces.first().copied().unwrap_or_default()),
                None if silent => Answer::Empty(nothing),
                None => Answer::Unsaid,
            };
        }
        let Some(content) = response.get("content").and_then(Value::as_object).filter(|c| !c.is_empty()) else {
            return if silent { Answer::Empty(nothing) } else { Answer::Unsaid };
        };
        match content.iter().find(|(media, _)| is_json(media)) {
            Some((_, value)) => match self.follow(value).get("schema") {
                Some(schema) => Answer::Json(schema),
                None => Answer::Unsaid,
            },
            None => Answer::Other(content.keys().next().map(String::as_str).unwrap_or_default()),
        }
    }
}

/// `default` describes success only where no code does.
fn codes_are_few(responses: &Map<String, Value>) -> bool {
    !responses.keys().any(|code| code.starts_with('2'))
}

pub fn is_json(media: &str) -> bool {
    let kind = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.ends_with("json") || kind == "*/*" || kind == "application/*"
}

/// The content that a catalog can send best.
fn best(content: &Map<String, Value>) -> Option<(&str, &Value)> {
    let rank = |media: &str| match media.split(';').next().unwrap_or_default().trim() {
        "application/json" => 0,
        media if is_json(media) => 1,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        _ => 4,
    };
    content.iter().map(|(media, value)| (media.as_str(), value)).min_by_key(|(media, _)| rank(media))
}
