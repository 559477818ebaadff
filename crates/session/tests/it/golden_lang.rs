//! Golden cases of the checker and the planner (`tests/lang/check` and `tests/lang/plan`), and properties of the
//! compiler: digests of plans, bounded time, exact dates, no panics.

use base::{Diagnostic, Limits, Timestamp, render_for_model};
use lang::{check, codes, plan};
use session::compile_stages;

use crate::golden_scopes::scope;

fn compile_case(case: &testkit::golden::Case) -> String {
    let stages = compile_stages(&scope(case), &case.input, &Limits::default());
    let notes = render_for_model(&case.input, &stages.diagnostics);
    let outline = match case.attribute("stage") {
        Some("plan") => stages.plan.as_ref().map(plan::explain),
        _ => stages.checked.as_ref().map(check::outline),
    };
    [outline.unwrap_or_default(), notes].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_check() {
    testkit::golden::run("../../tests/lang/check", compile_case);
}

#[test]
fn golden_plan() {
    testkit::golden::run("../../tests/lang/plan", compile_case);
}

/// Returns the digest of the program's plan. A program that needs the larger catalog is planned on the tracker.
fn plan_digest(program: &str) -> base::Digest {
    let mut case = testkit::golden::Case { input: program.to_owned(), ..Default::default() };
    let needs_tracker = ["open(", "close(", "Page", "Comment", "=>"].iter().any(|word| program.contains(word));
    case.attributes.extend(needs_tracker.then(|| ("catalog".to_owned(), "tracker".to_owned())));
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
        assert_eq!(plan_digest(a), plan_digest(b), "{a}\n--\n{b}");
    }
    let different = [
        ("Ticket.limit(5)", "Ticket.limit(6)"),
        ("Ticket{state=open}", "Ticket{state=done}"),
        ("Ticket, Person", "Person, Ticket"),
        ("Ticket[title]", "Ticket[title, number]"),
        ("Project(\"OPS\")", "Project(\"ops\")"),
        ("Ticket.sort(votes)", "Ticket.sort(votes, desc)"),
        ("Ticket.open(project=\"A\", title=\"b\")", "Ticket.open(project=\"A\", title=\"c\")"),
        // The number of effects counts, and so does their order among reads.
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
        assert_ne!(plan_digest(a), plan_digest(b), "{a}\n--\n{b}");
    }
}

/// Also checks that the planner accepts everything that parses and checks.
#[test]
fn no_input_makes_the_compiler_panic() {
    let fragments = [
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
            program.push_str(fragments[(seed >> 33) as usize % fragments.len()]);
        }
        let stages = compile_stages(&scope, &program, &Limits::default());
        let refused = stages.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(refused, stages.plan.is_none(), "{program}");
    }
}

/// Nesting must not cost more time or stack than the length of the program explains.
#[test]
fn deeply_nested_programs_are_planned_in_time() {
    let attributes = std::collections::BTreeMap::from([("catalog".to_owned(), "tracker".to_owned())]);
    let scope = scope(&testkit::golden::Case { attributes, ..Default::default() });
    let nested_values = (0..60).fold("_.title".to_owned(), |inner, _| format!("_.^Ticket => {{x: {inner}}}"));
    let nested_reads =
        (0..30).fold("\"x\"".to_owned(), |inner, _| format!("Ticket{{owner=_.owner}}.limit(2) => {{x: {inner}}}"));
    let long_chain = format!("Ticket{}", ".filter{votes>1}.limit(9)".repeat(240));
    let many_steps = (0..480).map(|n| format!("a{n} = Ticket{{state=open}}.limit({})\n", n + 1)).collect::<String>();
    let long_text =
        format!("t = <<T\n{}\nT\n{}t", "x".repeat(40_000), "b = Ticket(project=\"a\", number=1).close(note=t)\n");
    for program in [
        format!("Person.limit(2) => {{x: {nested_values}}}"),
        format!("Ticket.limit(2) => {{x: {nested_reads}}}"),
        long_chain,
        many_steps,
        long_text,
    ] {
        let start = std::time::Instant::now();
        let stages = compile_stages(&scope, &program, &Limits::default());
        let refused = stages.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(refused, stages.plan.is_none(), "{program}");
        stages.plan.as_ref().map(plan::explain);
        assert!(start.elapsed().as_secs() < 5, "{} bytes took {:?}", program.len(), start.elapsed());
    }
}

/// The dates that a program can name: from 0001-01-01 up to 10000-01-01, in milliseconds.
const REPRESENTABLE_DATES: std::ops::Range<i128> = -62_135_596_800_000..253_402_300_800_000;

/// Compares dates that are counted from now with arithmetic that cannot overflow: nothing wraps and nothing panics.
#[test]
fn a_date_offset_is_exact_or_refused() {
    let attributes = std::collections::BTreeMap::from([("catalog".to_owned(), "tracker".to_owned())]);
    let scope = scope(&testkit::golden::Case { attributes, ..Default::default() });
    let now = i128::from(scope.now.unwrap().0).div_euclid(1000) * 1000;
    let units: [(&str, i128); 6] =
        [("s", 1000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];
    let mut seed = 11u64;
    let mut random_below = |limit: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 16) % limit
    };
    let mut exact_count = 0;
    let mut refused_count = 0;
    for _ in 0..4_000 {
        // Up to 24 digits, which is more than a 64-bit number has.
        let digits = 1 + random_below(24) as usize;
        let number: String = (0..digits).map(|_| char::from(b'0' + random_below(10) as u8)).collect();
        let (unit, milliseconds) = units[random_below(6) as usize];
        let (sign, factor) = if random_below(2) == 0 { ("-", -1) } else { ("+", 1) };
        let program = format!("Ticket{{since=now{sign}{number}{unit}}}");
        let stages = compile_stages(&scope, &program, &Limits::default());
        let moment = now + factor * number.parse::<i128>().unwrap() * milliseconds;
        if REPRESENTABLE_DATES.contains(&moment) {
            let text = Timestamp(i64::try_from(moment).unwrap()).to_string();
            let expected_date = format!("{}Z", &text[..19]);
            let outline = check::outline(stages.checked.as_ref().unwrap_or_else(|| panic!("{program}")));
            assert!(outline.contains(&expected_date), "{program}: {expected_date}\n{outline}");
            exact_count += 1;
        } else {
            assert!(stages.checked.is_none(), "{program}");
            assert!(stages.diagnostics.iter().all(|d| d.code == codes::WRONG_TYPE), "{program}");
            refused_count += 1;
        }
    }
    assert!(exact_count > 500 && refused_count > 500, "{exact_count} exact, {refused_count} refused");
}
