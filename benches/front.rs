//! Times the stages of the compiler from text to plan, for programs of growing size up to the largest allowed program.
//! Invariant: the benchmark stops if a measured program has no plan. It asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use base::{Diagnostic, Limits, Timestamp};
use lang::scope::Scope;
use lang::{check, plan, syntax};
use teach::{Ledger, Seed};

const ROUNDS: usize = 400;

/// A program of twelve statements, like those that an agent writes at the end of a triage.
const PROGRAM: &str = r#"me = Account.me()
open = Ticket{project="OPS", state=open, since=now-7d}
hot = open.filter{votes>=3, labels=bug}.sort(votes, desc).limit(5)
who = open.group_by(owner, n=count, v=sum(votes)).sort(n, desc).limit(10)
top = hot.first()
talk = top.comments.limit(20)[author.name, text]
found = Ticket~"raft election"{state=open}.limit(3)
report = hot[number, title, votes, owner.name] <<MD
{% for t in rows %}- #{{ t.number }} {{ t.title }} ({{ t.votes }}, {{ t.owner.name }})
{% endfor %}
MD
filed = Ticket.open(project="OPS", title="Triage of the week", body=report, owner=top.owner, labels=[bug, ops], due=today+1w)
said = hot => Comment.create(ticket=_, text="Part of #{{ _.number }}: {{ _.title }}")
posted = Message.send(to=channel{name="ops"}, text=report.content)
who, talk, found[title], filed[number], said, posted, me"#;

fn scope() -> Scope {
    let text = include_str!("../tests/lang/catalogs/tracker.yaml");
    let tracker = catalog::read("tracker.yaml", text).unwrap();
    let seeds: Vec<Seed> = tracker.entities.keys().map(|entity| Seed::new(tracker.id.clone(), entity)).collect();
    let catalogs = BTreeMap::from([(tracker.id.clone(), Arc::new(tracker))]);
    let mut scope =
        Ledger::default().extend(&catalogs, &teach::TeachRequest::all(&seeds)).unwrap().ledger.scope(&catalogs);
    scope.now = Some(Timestamp(1_794_745_845_678));
    scope
}

/// Returns the median time of the rounds in microseconds.
fn median<T>(rounds: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

struct Cost {
    lex: f64,
    parse: f64,
    check: f64,
    plan: f64,
}

impl Cost {
    /// Returns the time from text to plan. The time of lexing is left out, because parsing includes it.
    fn all(&self) -> f64 {
        self.parse + self.check + self.plan
    }
}

fn measure(scope: &Scope, text: &str, rounds: usize) -> Cost {
    let limits = Limits::default();
    let parsed = syntax::parse(text, &limits);
    assert!(!parsed.diagnostics.iter().any(Diagnostic::is_error), "{:?}", parsed.diagnostics.first());
    let (checked, _) = check::check(scope, &parsed.program).unwrap_or_else(|found| panic!("{:?}", found.first()));
    Cost {
        lex: median(rounds, || syntax::tokens(text)),
        parse: median(rounds, || syntax::parse(text, &limits)),
        check: median(rounds, || check::check(scope, &parsed.program)),
        plan: median(rounds, || plan::plan(&checked, &limits)),
    }
}

/// Makes a program of `count` statements, which all differ and define different names.
fn statements(count: usize) -> String {
    let line = |n: usize| match n % 3 {
        0 => format!("a{n} = Ticket{{project=\"P{n}\", state=open}}.limit({})\n", n + 1),
        1 => format!("a{n} = a{}.filter{{votes>={n}}}.sort(votes, desc)[number, title]\n", n - 1),
        _ => format!("a{n} = a{}.aggregate(n=count)\n", n - 1),
    };
    let last = count - 1;
    (0..last).map(line).collect::<String>() + &format!("a{}", last - 1)
}

/// Makes a program whose statement has a text of about `bytes` bytes.
fn long_text(bytes: usize) -> String {
    let body = "Some line of a long text, with \"quotes\" and ;; more.\n".repeat(bytes / 54);
    format!("t = <<T\n{body}T\nTicket(project=\"OPS\", number=7).close(note=t)")
}

fn grow(scope: &Scope, title: &str, sizes: &[usize], unit: &str, make: impl Fn(usize) -> String) {
    println!("\n{title}: µs per {unit}, and as a ratio to the first");
    println!("{:>9} {:>9} {:>16} {:>16} {:>16} {:>16}", unit, "bytes", "parse", "check", "plan", "all");
    let mut first: Option<[f64; 4]> = None;
    for &size in sizes {
        let text = make(size);
        let cost = measure(scope, &text, 41);
        let each = [cost.parse, cost.check, cost.plan, cost.all()].map(|us| us / size as f64);
        let base = *first.get_or_insert(each);
        let cells: Vec<String> =
            each.iter().zip(base).map(|(us, base)| format!("{us:>8.4} {:>5.2}x ", us / base)).collect();
        println!("{size:>9} {:>9} {}", text.len(), cells.join(" "));
    }
}

fn main() {
    let scope = scope();
    measure(&scope, PROGRAM, ROUNDS);
    let cost = measure(&scope, PROGRAM, ROUNDS);
    println!(
        "a program of 12 statements ({} bytes), median of {ROUNDS}; the target is under 60 µs in all",
        PROGRAM.len()
    );
    for (stage, us) in [
        ("lex alone", cost.lex),
        ("parse, lexing included", cost.parse),
        ("check", cost.check),
        ("plan", cost.plan),
        ("all", cost.all()),
    ] {
        println!("{stage:<24} {us:>8.1} µs {:>6.2}x of the target", us / 60.0);
    }
    grow(&scope, "statements", &[62, 125, 250, 500], "statement", statements);
    grow(&scope, "text", &[8_000, 16_000, 32_000, 64_000], "byte", long_text);
    let damaged = |count: usize| statements(count).replace("desc", "desc, ");
    let limits = Limits::default();
    println!("\na program that is wrong in every third statement: µs per statement");
    for count in [62, 125, 250, 500] {
        let text = damaged(count);
        println!("{count:>9} {:>8.2}", median(41, || syntax::parse(&text, &limits)) / count as f64);
    }
}
