//! Tests of templates: their output, their limits, and the names in their errors.

use super::super::view::Catalogs;
use super::*;
use crate::outcome::Rowset;
use catalog::Type;
use lang::plan::{Column, EntityRef};
use serde_json::json;

fn rendered(source: &str, rows: Value, limits: &Limits) -> Result<String, StepError> {
    let rows = rows.as_array().unwrap().iter().map(|row| row.as_object().unwrap().clone()).collect();
    let mut rows = Rowset::complete(rows);
    let mut people = Attached::new(vec!["owner".into()]);
    people.insert(json!("ada"), Some(Arc::new(json!({"id": "ada", "name": "Ada"}).as_object().unwrap().clone())));
    rows.attached.push(Arc::new(people));
    let catalogs = Catalogs::new();
    let column = |name: &str| Column { name: name.into(), kind: Type::Json };
    let columns = [column("number"), column("title"), column("owner")];
    let of = EntityRef { catalog: base::CatalogId::parse("x").unwrap(), entity: "Ticket".into() };
    let view = RowsView { rows: &rows, columns: &columns, of: Some(&of), catalogs: &catalogs };
    let names = [("p9".to_owned(), "number".to_owned()), ("p13".to_owned(), "owner".to_owned())];
    over_rows(limits, TemplateSource { text: source, names: &names }, &view).render()
}

fn text(source: &str, rows: Value) -> String {
    rendered(source, rows, &Limits::default()).unwrap()
}

#[test]
fn symbols_and_names_and_references_render() {
    let rows = json!([
        {"number": 1, "title": "a <b>", "owner": "ada", "due": null, "lead.name": "Lin"},
        {"number": 2.5, "title": "c", "owner": null, "due": "x", "lead.name": null},
    ]);
    assert_eq!(text("{% for r in rows %}{{ r.p9 }} {{ r.number }}\n{% endfor %}", rows.clone()), "1 1\n2.5 2.5");
    assert_eq!(text("{{ rows[0].p13 }} is {{ rows[0].p13.name }}", rows.clone()), "ada is Ada");
    assert_eq!(text("Hi {{ rows[1].owner.name }}{% if rows[1].owner %}!{% endif %}", rows.clone()), "Hi ");
    assert_eq!(text("{{ rows[0].title }}{{ rows[0].due }}|{{ rows|length }}", rows.clone()), "a <b>|2");
    assert_eq!(text("{% for r in rows %}{{ r.lead.name }},{% endfor %}", rows.clone()), "Lin,,");
    assert_eq!(text("{{ rows|map(attribute='number')|join('+') }}\n\n", rows.clone()), "1+2.5\n");
    assert_eq!(text("{{ _.title }}", json!([rows[1].clone()])), "c", "one row is `_` too");
}

#[test]
fn a_value_is_never_parsed_as_a_template() {
    let hostile = json!([{"number": 1, "title": "{{ rows }}{% for x in y %}", "owner": null}]);
    assert_eq!(text("{{ _.title }}", hostile), "{{ rows }}{% for x in y %}");
}

#[test]
fn a_metered_filter_gives_the_same_result_as_a_plain_one() {
    let rows = json!([
        {"number": 2, "title": "b", "owner": "ada"}, {"number": 1, "title": "a", "owner": null},
        {"number": 2, "title": "c", "owner": "ada"},
    ]);
    for (source, wanted) in [
        ("{{ rows|sort(attribute='number')|map(attribute='title')|join(', ') }}", "a, b, c"),
        ("{{ rows|selectattr('number', 'eq', 2)|map(attribute='title')|list|length }}", "2"),
        ("{{ rows|map(attribute='title')|map('upper')|join }}", "BAC"),
        ("{{ rows|join('|', attribute='title') }}", "b|a|c"),
        ("{{ rows|map(attribute='number')|unique|join(' ') }} {{ rows|map(attribute='number')|sum }}", "2 1 5"),
        ("{% for g in rows|groupby('number') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}", "1:1 2:2 "),
        ("{{ 'a-b'|replace('-', '+')|upper }}{{ '  x '|trim }}{{ 3.14159|round(2) }}", "A+Bx3.14"),
        ("{{ missing|default('none') }}{{ rows[0].missing|d('!') }}", "none!"),
        ("{{ rows[1].owner|default('nobody', true) }}", "nobody"),
        ("{{ [1, 2]|tojson }}{{ rows|first|attr('title') }}{{ 'é'|length }}", "[1, 2]b1"),
        ("{{ rows|map(attribute='title')|reject('eq', 'a')|list|tojson }}", "[\"b\", \"c\"]"),
    ] {
        assert_eq!(
            rendered(source, rows.clone(), &Limits::default()).map_err(|e| e.to_string()),
            Ok(wanted.into()),
            "{source}"
        );
    }
}

#[test]
fn a_template_with_too_much_work_is_stopped_in_time() {
    let body = "lorem ipsum dolor ".repeat(20_000);
    let row = |n: usize| json!({"number": n, "title": format!("t{n}"), "body": body, "owner": "ada"});
    let rows: Vec<Value> = (0..200).map(row).collect();
    let repeated = |inner: &str| {
        format!(
            "{{% for a in range(9999) %}}{{% for b in range(9999) %}}{{% if {inner} %}}{{% endif %}}{{% endfor %}}{{% endfor %}}"
        )
    };
    let bombs = [
        repeated("rows|tojson|length"),
        repeated("rows|sort(attribute='body')"),
        repeated("rows|sort"),
        repeated("rows|unique(attribute='body')|list"),
        repeated("rows|groupby('body')|list"),
        repeated("rows|map(attribute='body')|join|length"),
        repeated("rows|map(attribute='body')|map('replace', 'o', 'oooooooooooooooooooooooooooooooooo')|list"),
        repeated("range(9999)|join(rows[0].body)|length"),
        repeated("range(9999)|map('string')|join(', ')|length"),
        repeated("rows[0].body|upper|lower|title|length"),
        repeated("rows[0].body|list|sort|unique|join|length"),
        repeated("rows[0].body|split(' ')|sort|join('-')|length"),
        repeated("rows[0].body == rows[1].body"),
        repeated("'x' in rows[0].body"),
        repeated("'zz' in rows|map(attribute='body')|list"),
        repeated("rows == rows"),
        repeated("(rows + rows + rows + rows + rows + rows + rows + rows)|length"),
        repeated("(rows|chain(rows)|chain(rows)|chain(rows)|chain(rows)|chain(rows))|list|length"),
        repeated("(rows[0].body ~ rows[1].body ~ rows[2].body ~ rows[3].body ~ rows[4].body)|length"),
        repeated(&format!("({})|length", vec!["rows[0].body"; 60].join("~"))),
        repeated("(rows[0].body|replace('o', rows[1].body))|length"),
        repeated("rows[0]|string|length"),
        repeated("rows|string|length"),
        repeated("rows|map('string')|join|length"),
        repeated("rows|map('tojson')|map('length')|sum"),
        repeated("rows|selectattr('body', 'in', [rows[0].body])|list|length"),
        repeated("rows|zip(rows, rows)|list|length"),
        repeated("rows|dictsort"),
        repeated("rows[0]|items|list|tojson|length"),
        repeated("range(99999)|list|reverse|list|sort|sum"),
    ];
    for bomb in bombs {
        let start = std::time::Instant::now();
        let ended = rendered(&bomb, json!(rows), &Limits::default());
        let took = start.elapsed();
        assert!(took.as_secs() < 10, "{bomb} took {took:?}");
        assert!(ended.is_err(), "{bomb}");
    }
}

#[test]
fn an_error_names_its_line() {
    let message =
        |source: &str, limits: &Limits| rendered(source, json!([{"number": 1}]), limits).unwrap_err().to_string();
    let limits = Limits::default();
    assert!(message("x\n{{ _.nothing }}", &limits).starts_with("the template, line 2: a name that is not there"));
    assert!(message("x\n{{ _.nothing }}", &limits).contains("nothing"), "{}", message("x\n{{ _.nothing }}", &limits));
    assert_eq!(message("{{ unknown }}", &limits), "the template, line 1: a name that is not there: `unknown`");
    assert!(message("a\n\n{% for %}", &limits).contains("line 3"), "{}", message("a\n\n{% for %}", &limits));
    for removed in ["{{ debug() }}", "{% include 'x' %}", "{% import 'x' as y %}", "{{ namespace() }}"] {
        message(removed, &limits);
    }
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
    assert!(message(endless, &limits).contains("too many steps"), "{}", message(endless, &limits));
    let long = Limits { template_output_bytes: 100, ..Limits::default() };
    let many = format!("{{{{ '{}' }}}}", "x".repeat(101));
    assert!(message(&many, &long).contains("longer than 100 bytes"), "{}", message(&many, &long));
    assert!(message(&"x".repeat(70_000), &limits).contains("source is longer"));
}
