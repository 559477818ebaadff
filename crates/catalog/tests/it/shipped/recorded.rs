//! Recorded cases: reads a call with its recorded answer, and renders the request and the rows that the catalog
//! makes, as text.
//!
//! ```text
//! ticket_list {"state": "open"}            the capability and its arguments
//! 200                                      the answer: its status, its headers, an empty line, its body
//! link: </tickets?page=2>; rel="next"
//!
//! {"data": [{"project": "OPS", "number": 7}]}
//! ```
//! A case without an answer shows only the request. `#! size = 2` requests pages of two rows, and
//! `#! fields = id lines` requests only these fields. If the answer has a next page, the case shows the request for
//! the next page.
//! Invariant: the arguments of a case are checked like the arguments of a program, so each case shows a request that
//! a program can make.

use base::{Auth, Payload, Request, Response};
use catalog::{
    Args, BindInput, Capability, Catalog, DecodeInput, Decoded, NextPage, PagePosition, PageRequest, RequestedPage,
    Row, RowWindow, Type, bind,
};
use serde_json::Value;

/// The idempotency key that every write of the cases sends.
const IDEMPOTENCY_KEY: &str = "once-1";

/// A parsed case.
pub struct Recorded<'a> {
    pub catalog: &'a Catalog,
    pub capability: &'a Capability,
    args: Args,
    /// The first page, if the capability has pages.
    page: Option<PageRequest>,
    /// The names of the requested fields, or `None` for all fields.
    fields: Option<Vec<String>>,
    /// The recorded answer, if the case has one.
    pub response: Option<Response>,
}

impl<'a> Recorded<'a> {
    pub fn read(catalog: &'a Catalog, case: &testkit::golden::Case) -> Self {
        let (call, answer) = case.input.split_once('\n').unwrap_or((&case.input, ""));
        let (name, args) = call.split_once(' ').unwrap_or((call, "{}"));
        let capability = catalog.capability(name).unwrap_or_else(|| panic!("no capability `{name}`"));
        let args: Args = serde_json::from_str(args).unwrap_or_else(|error| panic!("arguments of `{name}`: {error}"));
        check_args(catalog, capability, &args);
        let most = capability.paging.as_ref().and_then(|p| p.size.as_ref()).map_or(100, |size| size.max);
        let size = case.attribute("size").map_or(most, |size| size.parse().unwrap());
        let page = capability.paging.is_some().then_some(PageRequest { at: PagePosition::First, size });
        let fields = case.attribute("fields").map(|names| names.split(' ').map(str::to_owned).collect());
        Self { catalog, capability, args, page, fields, response: parse_response(answer) }
    }

    /// Renders the expectation of the case: the request, the rows, and the request for the next page.
    pub fn render(&self) -> String {
        let mut out = match self.bind_request(self.page.as_ref()) {
            Ok(request) => render_request(&request),
            Err(refused) => return format!("refused: {refused}"),
        };
        match self.decode_answer() {
            None => {}
            Some(Err(error)) => out.push(format!("error: {error}")),
            Some(Ok(decoded)) => {
                out.extend(decoded.rows.iter().map(|row| format!("row {}", Value::Object(row.clone()))));
                out.extend(self.render_next_page(&decoded.next));
            }
        }
        out.join("\n")
    }

    pub fn rows(&self) -> Vec<Row> {
        self.decode_answer().and_then(Result::ok).map(|decoded| decoded.rows).unwrap_or_default()
    }

    fn bind_request(&self, page: Option<&PageRequest>) -> Result<Request, catalog::BindError> {
        let idempotency_key = (!self.capability.kind.is_read()).then_some(IDEMPOTENCY_KEY);
        bind(
            self.catalog,
            self.capability,
            &BindInput { args: &self.args, page, fields: self.fields.as_deref(), idempotency_key },
        )
    }

    fn decode_answer(&self) -> Option<Result<Decoded, catalog::DecodeError>> {
        let response = self.response.as_ref()?;
        let requested = self.page.as_ref().map(|page| RequestedPage { page, rows_before: 0 });
        Some(catalog::decode(
            self.catalog,
            self.capability,
            &DecodeInput { response, args: &self.args, page: requested, max_depth: 64, window: RowWindow::ALL },
        ))
    }

    fn render_next_page(&self, next: &NextPage) -> Vec<String> {
        let Some(first) = &self.page else { return Vec::new() };
        match next {
            NextPage::End => vec!["end".to_owned()],
            NextPage::Lost => vec!["lost".to_owned()],
            NextPage::At(at) => {
                let request = self.bind_request(Some(&PageRequest { at: at.clone(), size: first.size })).unwrap();
                let carried = request.body.as_ref().map(|body| format!("next {}", render_body(body)));
                std::iter::once(format!("next {}", render_request_line(&request))).chain(carried).collect()
            }
        }
    }
}

fn check_args(catalog: &Catalog, capability: &Capability, args: &Args) {
    let known = |name: &String| capability.params.contains_key(name) || capability.anchor.contains(name);
    for name in args.keys() {
        assert!(known(name), "`{}` has no parameter `{name}`", capability.name);
    }
    for param in capability.params.values() {
        match args.get(&param.name).filter(|value| !value.is_null()) {
            None => assert!(!param.required, "`{}` needs `{}`", capability.name, param.name),
            Some(value) => check_value(catalog, &param.kind, value, &param.name),
        }
    }
    for part in &capability.anchor {
        assert!(args.contains_key(part), "`{}` needs the instance's `{part}`", capability.name);
    }
}

fn check_value(catalog: &Catalog, kind: &Type, value: &Value, name: &str) {
    let parts = match kind {
        Type::Ref(entity) => catalog.entity(entity).map(|e| e.key.clone()).unwrap_or_default(),
        _ => Vec::new(),
    };
    match parts.as_slice() {
        [] | [_] => kind.accept(value).unwrap_or_else(|error| panic!("`{name}`: {error}")),
        parts => assert!(parts.iter().all(|part| value.get(part).is_some()), "`{name}` has a key of {parts:?}"),
    }
}

fn parse_response(text: &str) -> Option<Response> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next()?.trim().parse().unwrap_or_else(|_| panic!("an answer starts with its status"));
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("`{line}` is not a header"));
        (name.to_ascii_lowercase(), value.to_owned())
    };
    Some(Response { status, headers: lines.map(header).collect(), body: body.trim().as_bytes().to_vec() })
}

fn render_request(request: &Request) -> Vec<String> {
    let mut out = vec![render_request_line(request)];
    out.extend(request.auth.as_ref().map(render_auth));
    out.extend(request.headers.iter().map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase())));
    out.extend(request.body.as_ref().map(render_body));
    out
}

fn render_request_line(request: &Request) -> String {
    let query = encode_pairs(&request.query);
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{} {}{}{mark}{query}", request.method.as_str(), request.origin, request.path)
}

/// Encodes query or form pairs as the crate `upstream` encodes them in a request.
fn encode_pairs(pairs: &[(String, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().replace('+', "%20")
}

fn render_auth(auth: &Auth) -> String {
    match auth {
        Auth::Bearer(secret) => format!("authorization: Bearer ${secret}"),
        Auth::Header { name, secret, prefix } => {
            let prefix = prefix.as_ref().map(|p| format!("{p} ")).unwrap_or_default();
            format!("{}: {prefix}${secret}", name.to_ascii_lowercase())
        }
        Auth::Query { name, secret } => format!("query {name}=${secret}"),
        Auth::Basic { user, password } => format!("authorization: Basic ${user}:${password}"),
        Auth::Oauth2 { .. } => "authorization: Bearer (fetched)".to_owned(),
    }
}

fn render_body(body: &Payload) -> String {
    match body {
        Payload::Json { value, content_type: None } => format!("json {value}"),
        Payload::Json { value, content_type: Some(kind) } => format!("json ({kind}) {value}"),
        Payload::Form(pairs) => format!("form {}", encode_pairs(pairs)),
        Payload::Multipart(parts) => {
            let part = |p: &base::FormPart| {
                let file = p.file_name.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
                format!("{}{file} = {}", p.name, String::from_utf8_lossy(&p.bytes))
            };
            format!("multipart {}", parts.iter().map(part).collect::<Vec<_>>().join("; "))
        }
        Payload::Bytes { content_type, bytes } => format!("bytes ({content_type}) {}", String::from_utf8_lossy(bytes)),
    }
}
