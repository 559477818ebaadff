//! Golden cases of the checker and the planner (`tests/lang/check` and `tests/lang/plan`), in sessions that were
//! taught the whole demo catalog.

use base::{Diagnostic, Limits, render_for_model};
use lang::{check, plan};
use session::compile_stages;

use crate::golden_scopes::scope;

fn found(case: &testkit::golden::Case) -> String {
    let stages = compile_stages(&scope(case), &case.input, &Limits::default());
    let notes = render_for_model(&case.input, &stages.diagnostics);
    let value = match case.attribute("stage") {
        Some("plan") => stages.plan.as_ref().map(plan::explain),
        _ => stages.checked.as_ref().map(check::outline),
    };
    [value.unwrap_or_default(), notes].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_check() {
    testkit::golden::run("../../tests/lang/check", found);
}

#[test]
fn golden_plan() {
    testkit::golden::run("../../tests/lang/plan", found);
}

fn digest(program: &str) -> base::Digest {
    let mut case = testkit::golden::Case { input: program.to_owned(), ..Default::default() };
    let tracked = ["open(", "close(", "Page", "Comment", "=>"].iter().any(|word| program.contains(word));
    case.attributes.extend(tracked.then(|| ("catalog".to_owned(), "tracker".to_owned())));
    let stages = compile_stages(&scope(&case), program, &Limits::default());
    stages.plan.unwrap_or_else(|| panic!("{program}: {:?}", stages.diagnostics)).digest
}

/// Programs with the same meaning have the same digest, and near misses have another.
#[test]
fn naming_a_step_does_not_change_the_digest() {
    let same = [
        ("Ticket{state=open}.limit(5)", "x = Ticket{state=open}\nx.limit(5)"),
        ("Ticket{state=open}.limit(5)", "x = Ticket{state=\"open\"}\ny = x.limit(5)\ny"),
        ("e4{p22=\"open\"}", "Ticket{state=open}"),
        ("Project(\"OPS\").tickets[title]", "p = Project(key=\"OPS\")\nt = p.tickets\nt[title]"),
        ("Ticket, Ticket.limit(3)", "t = Ticket\nt, t.limit(3)"),
        ("a = Person\nTicket", "Ticket"),
        ("Ticket{state=open, priority=1}", "Ticket{priority=1, state=open}"),
        ("Ticket{priority=1}", "Ticket{priority=1.0}"),
        ("Ticket[title, votes][title]", "Ticket[title]"),
        ("ticket", "Ticket"),
        ("x = Ticket\ny = Person\ny.limit(3), x.limit(2)", "Person.limit(3), Ticket.limit(2)"),
        (
            "t = Ticket(project=\"OPS\", number=7)\nt.close(note=\"x\")",
            "Ticket(project=\"OPS\", number=7).close(note=\"x\")",
        ),
        ("x = Ticket\nx.open(project=\"A\", title=\"b\")", "Ticket.open(project=\"A\", title=\"b\")"),
        (
            "t = Ticket(project=\"OPS\", number=7)\nComment{ticket=t}",
            "Comment{ticket=Ticket(project=\"OPS\", number=7)}",
        ),
        ("n = \"x\"\nTicket.open(project=n, title=n)", "Ticket.open(project=\"x\", title=\"x\")"),
        ("p = Page.limit(3)\np[words]", "Page.limit(3)[words]"),
        (
            "all = Ticket\nPerson.limit(2) => {n: all.filter{owner=_}.aggregate(n=count).n}",
            "other = Ticket\nPerson.limit(2) => {n: other.filter{owner=_}.aggregate(n=count).n}",
        ),
        ("r = Ticket.limit(2)\nr => {t: _.title}", "Ticket.limit(2) => {t: _.title}"),
    ];
    for (a, b) in same {
        assert_eq!(digest(a), digest(b), "{a}\n--\n{b}");
    }
    let different = [
        ("Ticket.limit(5)", "Ticket.limit(6)"),
        ("Ticket{state=open}", "Ticket{state=done}"),
        ("Ticket, Person", "Person, Ticket"),
        ("Ticket[title]", "Ticket[title, number]"),
        ("Project(\"OPS\")", "Project(\"ops\")"),
        ("Ticket.sort(votes)", "Ticket.sort(votes, desc)"),
        ("Ticket.open(project=\"A\", title=\"b\")", "Ticket.open(project=\"A\", title=\"c\")"),
        // Once differs from twice, and before differs from after.
        (
            "a = Ticket.open(project=\"A\", title=\"b\")\na",
            "a = Ticket.open(project=\"A\", title=\"b\")\nb = Ticket.open(project=\"A\", title=\"b\")\na",
        ),
        (
            "r = Ticket\na = Ticket.open(project=\"A\", title=\"b\")\na, r",
            "a = Ticket.open(project=\"A\", title=\"b\")\nr = Ticket\na, r",
        ),
    ];
    for (a, b) in different {
        assert_ne!(digest(a), digest(b), "{a}\n--\n{b}");
    }
}

/// The planner accepts everything that parses and checks, and no stage panics.
#[test]
fn no_input_makes_the_compiler_panic() {
    let words = [
        "e1",
        "Ticket",
        "Project(\"OPS\")",
        "{",
        "}",
        "(",
        ")",
        "state=open",
        ".limit(3)",
        ".tickets",
        "[title]",
        ",",
        "\n",
        "x =",
        "$",
        "\"",
        "<<T",
        ".owner",
        "é",
        "=>",
        "~",
        "_",
        "_.title",
        ".close(note=\"x\")",
        ".open(project=\"a\", title=\"{{ _.title }}\")",
        ".filter{owner.name=\"x\"}",
        ".sort(votes)",
        ".aggregate(n=count)",
        ".group_by(owner, n=count)",
        "{t: _.title, o: _.owner.name}",
        "Page",
        ".first()",
        ".^Ticket",
        "[slug, words]",
    ];
    let attributes = std::collections::BTreeMap::from([("catalog".to_owned(), "tracker".to_owned())]);
    let scope = scope(&testkit::golden::Case { attributes, ..Default::default() });
    let mut seed = 7u64;
    for _ in 0..20_000 {
        let mut program = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            program.push_str(words[(seed >> 33) as usize % words.len()]);
        }
        let stages = compile_stages(&scope, &program, &Limits::default());
        let refused = stages.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(refused, stages.plan.is_none(), "{program}");
    }
}

/// Time and stack do not grow with nesting beyond what the length explains.
#[test]
fn deeply_nested_programs_are_planned_in_time() {
    let attributes = std::collections::BTreeMap::from([("catalog".to_owned(), "tracker".to_owned())]);
    let scope = scope(&testkit::golden::Case { attributes, ..Default::default() });
    let deep = (0..60).fold("_.title".to_owned(), |inner, _| format!("_.^Ticket => {{x: {inner}}}"));
    let reads =
        (0..30).fold("\"x\"".to_owned(), |inner, _| format!("Ticket{{owner=_.owner}}.limit(2) => {{x: {inner}}}"));
    let long = format!("Ticket{}", ".filter{votes>1}.limit(9)".repeat(240));
    let many = (0..480).map(|n| format!("a{n} = Ticket{{state=open}}.limit({})\n", n + 1)).collect::<String>();
    let text =
        format!("t = <<T\n{}\nT\n{}t", "x".repeat(40_000), "b = Ticket(project=\"a\", number=1).close(note=t)\n");
    for program in
        [format!("Person.limit(2) => {{x: {deep}}}"), format!("Ticket.limit(2) => {{x: {reads}}}"), long, many, text]
    {
        let start = std::time::Instant::now();
        let stages = compile_stages(&scope, &program, &Limits::default());
        let refused = stages.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(refused, stages.plan.is_none(), "{program}");
        stages.plan.as_ref().map(plan::explain);
        assert!(start.elapsed().as_secs() < 5, "{} bytes took {:?}", program.len(), start.elapsed());
    }
}
