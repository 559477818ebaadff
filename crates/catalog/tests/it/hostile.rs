//! Tests with hostile values: no value of a program or an API becomes syntax. A request is bound to the catalog's
//! origin, and a server reads exactly the argument's value at the place of its hole. Otherwise binding refuses the
//! argument with a typed error.

use base::{Method, Payload, Request, Response};
use base64::Engine;
use catalog::{
    Args, BindError, BindInput, Catalog, DecodeInput, NextPage, PagePosition, PageRequest, PagingError, RequestedPage,
    RowWindow, bind, decode, read,
};
use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

/// A catalog that uses every part of the format.
const EVERY_YAML: &str = include_str!("../../../../tests/catalog/every.yaml");
/// Pieces of text with a special meaning in paths, queries, headers, bodies or templates.
const HOSTILE_WORDS: &[&str] = &[
    "../",
    "..",
    ".",
    "",
    "/",
    "//evil.example/x",
    "http://evil.example/",
    "\\\\evil.example",
    "%2f",
    "%2e%2e",
    "%00",
    "%",
    "?x=1",
    "#f",
    "&a=b",
    "=",
    ";",
    "a,b",
    "\r\nX-Evil: 1\r\n\r\n",
    "\0",
    "\"",
    "'",
    "{project}",
    "{+where}",
    "}",
    "{",
    "\\",
    "\u{ff0f}",
    "\u{2024}\u{2024}",
    "\u{202e}abc",
    "e\u{301}",
    "é",
    "\u{1f600}",
    "@evil.example",
    ":80",
    " ",
    " a ",
    "\t",
    "$id",
    "--boundary",
    "\n--\r\n",
    "null",
    "7",
    "[]",
    "a[b]",
];

fn every_catalog() -> &'static Catalog {
    static EVERY_CATALOG: std::sync::LazyLock<Catalog> =
        std::sync::LazyLock::new(|| read("every.yaml", EVERY_YAML).unwrap_or_else(|rejected| panic!("{rejected}")));
    &EVERY_CATALOG
}

fn hostile_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![3 => proptest::sample::select(HOSTILE_WORDS).prop_map(str::to_owned), 1 => any::<String>()];
    proptest::collection::vec(word, 1..4).prop_map(|words| words.concat())
}

fn make_args(pairs: &[(&str, Value)]) -> Args {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn bind_call(name: &str, args: &Args, page: Option<&PageRequest>) -> Result<Request, BindError> {
    let catalog = every_catalog();
    let request = bind(
        catalog,
        catalog.capability(name).unwrap(),
        &BindInput { page, idempotency_key: Some("once-1"), ..BindInput::new(args) },
    )?;
    assert_eq!(request.origin, catalog.origin);
    let header_names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(header_names.contains(&"X-Version"), "{header_names:?}");
    Ok(request)
}

/// Parses a request as a server does. Returns the decoded path segments after the base path, and the pairs of the
/// query.
fn parse_as_server(request: &Request) -> (Vec<String>, Vec<(String, String)>) {
    let mut url = Url::parse(&format!("{}{}", request.origin, request.path)).unwrap();
    assert_eq!(url.path(), request.path, "nothing is left for a parser to resolve");
    assert_eq!((url.query(), url.fragment(), url.username(), url.password()), (None, None, "", None));
    assert_eq!(url.origin().ascii_serialization(), "https://api.example.com");
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    let mut segments = url.path_segments().unwrap();
    assert_eq!(segments.next(), Some("v1"));
    let segments = segments.map(|s| percent_decode_str(s).decode_utf8().unwrap().into_owned()).collect();
    (segments, url.query_pairs().into_owned().collect())
}

fn is_safe_segment(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
}

fn is_header_value(text: &str) -> bool {
    text.bytes().all(|b| (0x20..0x7f).contains(&b)) && text.trim() == text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_path_hole_is_one_segment(value in hostile_text()) {
        match bind_call("person_get", &make_args(&[("id", json!(value))]), None) {
            Ok(request) => {
                prop_assert!(is_safe_segment(&value));
                let (segments, pairs) = parse_as_server(&request);
                prop_assert_eq!(segments, ["people", value.as_str()]);
                prop_assert!(pairs.is_empty() && request.body.is_none() && request.method == Method::Get);
            }
            Err(error) => prop_assert!(!is_safe_segment(&value) && matches!(error, BindError::Unsafe { .. }), "{error}"),
        }
    }

    #[test]
    fn a_plus_hole_keeps_its_segments(where_to in hostile_text(), content in hostile_text()) {
        match bind_call("ticket_import", &make_args(&[("where", json!(where_to)), ("content", json!(content))]), None) {
            Ok(request) => {
                let (segments, _) = parse_as_server(&request);
                let given: Vec<&str> = where_to.split('/').collect();
                prop_assert!(given.iter().all(|s| is_safe_segment(s)));
                prop_assert_eq!(&segments[1..], given.as_slice());
                let sent = Payload::Bytes { content_type: "text/csv".to_owned(), bytes: content.into_bytes() };
                prop_assert_eq!(request.body, Some(sent));
            }
            Err(error) => {
                prop_assert!(where_to.split('/').any(|s| !is_safe_segment(s)) && matches!(error, BindError::Unsafe { .. }), "{error}");
            }
        }
    }

    #[test]
    fn query_values_stay_in_their_parameters(project in hostile_text(), state in hostile_text(), one in hostile_text(), two in hostile_text()) {
        prop_assume!(is_safe_segment(&project));
        let given = make_args(&[
            ("project", json!(project)),
            ("state", json!(state)),
            ("tag", json!([one, two])),
            ("mark", json!([two])),
        ]);
        let request = bind_call("ticket_list", &given, Some(&PageRequest { at: PagePosition::Number(1), size: 50 })).unwrap();
        let (segments, pairs) = parse_as_server(&request);
        prop_assert_eq!(segments, ["projects", project.as_str(), "tickets"]);
        let expected = [
            ("state", state.as_str()), ("tag", &one), ("tag", &two), ("mark[]", &two), ("kind", "ticket"), ("page", "2"),
            ("per_page", "50"),
        ];
        prop_assert_eq!(pairs, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn headers_and_json_carry_values_unchanged(project in hostile_text(), title in hostile_text(), body in hostile_text()) {
        prop_assume!(is_safe_segment(&project));
        let price = json!({"amount": 1, "currency": body});
        let given = make_args(&[
            ("project", json!(project)), ("title", json!(title)), ("body", json!(body)), ("price", price.clone()),
        ]);
        let header = format!("about {title}");
        match bind_call("ticket_open", &given, None) {
            Ok(request) => {
                prop_assert!(is_header_value(&header));
                let expected = [("X-Note", header.as_str()), ("X-Version", "2026-11-15"), ("Idempotency-Key", "once-1")];
                prop_assert_eq!(&request.headers, &expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
                let sent = request.body.as_ref().and_then(Payload::as_json).unwrap().to_string();
                let read: Value = serde_json::from_str(&sent).unwrap();
                prop_assert_eq!(read, json!({"title": title, "text": {"markdown": body}, "price": price}));
            }
            Err(error) => prop_assert!(!is_header_value(&header) && matches!(error, BindError::NotAHeader { .. }), "{error}"),
        }
    }

    #[test]
    fn forms_parts_and_variables_carry_values_unchanged(project in hostile_text(), text in hostile_text()) {
        prop_assume!(is_safe_segment(&project));
        let key = [("project", json!(project)), ("number", json!(7))];
        let with_key = |more: &[(&str, Value)]| make_args(&[&key[..], more].concat());
        let form = bind_call("ticket_close", &with_key(&[("note", json!(text))]), None).unwrap();
        prop_assert_eq!(form.body, Some(Payload::Form(vec![("note".to_owned(), text.clone())])));

        let content = base64::engine::general_purpose::STANDARD.encode(&text);
        let parts = bind_call("ticket_attach", &with_key(&[("content", json!(content)), ("file", json!(text))]), None).unwrap();
        let Some(Payload::Multipart(parts)) = parts.body else { panic!("{:?}", parts.body) };
        let sent: Vec<_> = parts.iter().map(|p| (p.name.as_str(), p.file_name.as_deref(), p.bytes.as_slice())).collect();
        let from = format!("from {text}");
        prop_assert_eq!(sent, [("file", Some(text.as_str()), text.as_bytes()), ("note", None, from.as_bytes())]);

        let call = bind_call("ticket_rename", &with_key(&[("title", json!(text))]), None).unwrap();
        let other_call = bind_call("ticket_rename", &make_args(&[("project", json!("p")), ("number", json!(1)), ("title", json!("t"))]), None);
        let body = |request: &Request| request.body.as_ref().and_then(Payload::as_json).unwrap().clone();
        let other_body = body(&other_call.unwrap());
        let body = body(&call);
        prop_assert_eq!(&body["query"], &other_body["query"], "the document contains no value");
        let input = json!({"title": text, "key": "once-1"});
        prop_assert_eq!(&body["variables"], &json!({"input": input, "project": project, "number": 7}));
        prop_assert_eq!(body.as_object().unwrap().len(), 2);
    }

    #[test]
    fn references_and_cursors_carry_values_unchanged(project in hostile_text(), cursor in hostile_text()) {
        prop_assume!(is_safe_segment(&project));
        let ticket = json!({"project": project, "number": 7});
        let request = bind_call("comment_list", &make_args(&[("ticket", ticket)]), None).unwrap();
        prop_assert_eq!(parse_as_server(&request).0, ["projects", project.as_str(), "tickets", "7", "comments"]);

        let page = PageRequest { at: PagePosition::Cursor(cursor.clone()), size: 10 };
        let request = bind_call("ticket_search", &make_args(&[("q", json!(project))]), Some(&page)).unwrap();
        prop_assert_eq!(parse_as_server(&request), (vec!["search".to_owned()], Vec::new()));
        prop_assert_eq!(request.body, Some(Payload::json(json!({"query": project, "cursor": cursor}))));
    }

    /// A link in an answer is not trusted, like a value of a program.
    #[test]
    fn next_links_stay_on_the_origin(link in hostile_text(), shape in 0..4) {
        let link = match shape {
            0 => link,
            1 => format!("https://api.example.com{link}"),
            2 => format!("/{link}"),
            _ => format!("https://api.example.com/v1/x?{link}"),
        };
        let catalog = every_catalog();
        let response = |headers| Response { status: 200, headers, body: b"[]".to_vec() };
        let answer = response(vec![("link".to_owned(), format!("<{link}>; rel=\"next\""))]);
        let page = PageRequest { at: PagePosition::First, size: 10 };
        let requested = Some(RequestedPage { page: &page, rows_before: 0 });
        let list = catalog.capability("comment_list").unwrap();
        let decoded = decode(catalog, list, &DecodeInput { response: &answer, args: &Args::new(), page: requested, max_depth: 64, window: RowWindow::ALL });
        if let Ok(NextPage::At(at @ PagePosition::Address { .. })) = decoded.map(|d| d.next) {
            let given = make_args(&[("ticket", json!({"project": "p", "number": 1}))]);
            let request = bind_call("comment_list", &given, Some(&PageRequest { at, size: 10 })).unwrap();
            let url = Url::parse(&format!("{}{}", request.origin, request.path)).unwrap();
            prop_assert_eq!(url.origin().ascii_serialization(), "https://api.example.com");
            prop_assert!(request.path.starts_with('/') && !request.path.starts_with("//"), "{}", request.path);
            prop_assert_eq!(url.path(), &request.path);
        }
    }

    #[test]
    fn any_answer_is_rows_or_an_error(body in answers(), which in any::<proptest::sample::Index>()) {
        let catalog = every_catalog();
        let capability = catalog.capabilities.values().nth(which.index(catalog.capabilities.len())).unwrap();
        let response = Response { status: 200, headers: vec![("etag".to_owned(), "x".to_owned())], body: body.into_bytes() };
        let page = PageRequest { at: PagePosition::First, size: 2 };
        let requested = Some(RequestedPage { page: &page, rows_before: 0 });
        let given = make_args(&[("project", json!("p")), ("number", json!(1))]);
        let input = DecodeInput { response: &response, args: &given, page: requested, max_depth: 16, window: RowWindow::ALL };
        match decode(catalog, capability, &input) {
            Ok(decoded) => {
                let entity = catalog.entity(&capability.returns).unwrap();
                for row in &decoded.rows {
                    prop_assert!(entity.fields.keys().all(|field| row.contains_key(field)));
                    prop_assert!(entity.key.iter().all(|part| !row[part].is_null()));
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// Generates answers: JSON with the names of the catalog in any structure, and text that is not JSON.
fn answers() -> impl Strategy<Value = String> {
    let names = proptest::sample::select(&[
        "data",
        "items",
        "hits",
        "node",
        "id",
        "project",
        "number",
        "title",
        "state",
        "price",
        "blocks",
        "owner",
        "labels",
        "name",
        "viewer",
        "rename",
        "team",
        "comments",
        "nodes",
        "pageInfo",
        "hasNextPage",
        "endCursor",
        "daily",
        "date",
        "rain",
        "total",
        "next_cursor",
        "ok",
        "error",
        "errors",
        "message",
        "repo",
        "issue",
        "opened_at",
        "body",
        "comment",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9-]{0,12}".prop_map(Value::from),
        proptest::sample::select(HOSTILE_WORDS).prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    });
    prop_oneof![8 => tree.prop_map(|v| v.to_string()), 1 => any::<String>(), 1 => (1usize..400).prop_map(|n| "[".repeat(n))]
}

/// A server splits a list that is sent as one text at the separator. An item with the separator would become two
/// items.
#[test]
fn a_separator_in_a_value_is_refused() {
    for (style, separator) in [("comma", ','), ("space", ' ')] {
        let text = EVERY_YAML.replacen("list: repeat", &format!("list: {style}"), 1);
        let catalog = read("c", &text).unwrap_or_else(|rejected| panic!("{rejected}"));
        let list = catalog.capability("ticket_list").unwrap();
        let bind_tags = |items: Value| {
            bind(&catalog, list, &BindInput::new(&make_args(&[("project", json!("p")), ("tag", items)])))
        };
        let error = bind_tags(json!(["a", format!("b{separator}c")])).unwrap_err();
        assert!(matches!(error, BindError::Separator { .. }), "{error}");
        let query = bind_tags(json!(["a", "b", 3])).unwrap().query;
        assert!(query.contains(&("tag".to_owned(), format!("a{separator}b{separator}3"))), "{query:?}");
    }
}

#[test]
fn a_value_of_a_megabyte_is_sent_whole() {
    for unit in ["a", "/", "é", "%2f", "\r\n", "{id}"] {
        let long = unit.repeat(1_000_000 / unit.len());
        let request = bind_call("person_get", &make_args(&[("id", json!(long))]), None).unwrap();
        assert_eq!(parse_as_server(&request).0, ["people", long.as_str()]);
    }
}

/// Tests every form of paging that follows an address or a cursor of the API, with foreign addresses and repeated cursors.
#[test]
fn a_page_on_another_origin_is_refused_and_a_repeated_page_is_lost() {
    let catalog_with = |paging: &str| {
        let text = EVERY_YAML.replacen("paging: {link: next}", &format!("paging: {paging}"), 1);
        read("c", &text).unwrap_or_else(|rejected| panic!("{rejected}"))
    };
    let next_page = |catalog: &Catalog, at: PagePosition, next: &str| {
        let list = catalog.capability("comment_list").unwrap();
        let row = json!({"id": 5, "repo": {"name": "p"}, "issue": 1});
        let body_is_list = matches!(&list.paging, Some(p) if matches!(p.form, catalog::PagingForm::Link));
        let body = if body_is_list { json!([row]) } else { json!({"rows": [row], "next": next}) };
        let headers = vec![("link".to_owned(), format!("<{next}>; rel=next"))];
        let response = Response { status: 200, headers, body: body.to_string().into_bytes() };
        let page = PageRequest { at, size: 1 };
        let input = DecodeInput {
            response: &response,
            args: &Args::new(),
            page: Some(RequestedPage { page: &page, rows_before: 0 }),
            max_depth: 64,
            window: RowWindow::ALL,
        };
        decode(catalog, list, &input).map(|d| d.next)
    };
    let foreign_links = [
        "https://evil.example/v1/x",
        "//evil.example/x",
        "http://api.example.com/v1/x",
        "https://api.example.com:444/x",
        "https://u@api.example.com/x",
        "https://u:p@api.example.com/x",
        "\\\\evil.example\\x",
        "/\\evil.example/x",
        "https:\\\\evil.example/x",
        "data:text/plain,x",
        "file:///etc/passwd",
        "https://api.example.com.evil.example/",
        "https://api.example.com%2eevil.example/",
        "ht\ttps://evil.example/",
        "\u{1}https://evil.example",
    ];
    let next_url = catalog_with("{next: next}\n    rows: rows");
    for paging in [catalog_with("{link: next}"), next_url] {
        for link in foreign_links {
            let result = next_page(&paging, PagePosition::First, link);
            let refused =
                matches!(&result, Err(catalog::DecodeError::Paging(PagingError::Foreign(_) | PagingError::NotUrl)));
            assert!(refused, "{link}: {result:?}");
        }
    }
    let cursor = catalog_with("{cursor: next, send: cursor}\n    rows: rows");
    assert_eq!(next_page(&cursor, PagePosition::Cursor("a".to_owned()), "a").unwrap(), NextPage::Lost);
    let last = catalog_with("{last: id, send: after}\n    rows: rows");
    assert_eq!(next_page(&last, PagePosition::Cursor("5".to_owned()), "").unwrap(), NextPage::Lost);
}
