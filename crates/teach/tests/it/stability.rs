//! Over random sequences of calls, reloads and restarts: no symbol changes its meaning, numbers have no gaps, and a program that
//! was valid stays valid and keeps its plan.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base::{CatalogId, Digest, Limits};
use catalog::Catalog;
use lang::{check, plan, syntax};
use serde_json::Value;
use teach::{Catalogs, Ledger, Seed, SlotStyle, TeachRequest, Teaching, render_wave};

const SEQUENCES: u64 = 10_000;
const APIS: [&str; 3] = ["alpha", "beta", "gamma"];
const ENTITIES: [&str; 4] = ["Note", "Part", "Task", "User"];
const VERSIONS: u32 = 3;

/// A small generator of numbers, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.roll(items.len() as u64) as usize]
    }
}

/// Every version renames, adds and retypes: what was pinned must not see any of it.
fn made(api: &str, version: u32) -> Catalog {
    let level = if version == 2 { "string" } else { "integer" };
    let more = if version > 1 { format!(", added{version}: boolean") } else { String::new() };
    let write = if version == 3 { "finish" } else { "close" };
    let text = format!(
        r#"catalog: {api}
version: {version}
title: {api}
origin: http://{api}.localhost
entities:
  User: {{about: someone, key: [id], fields: {{id: string, name: string{more}}}}}
  Task:
    about: a piece of work
    key: [id]
    fields: {{id: string, title: string, level: {level}, owner: {{ref: User}}{more}}}
    relations:
      notes: {{many: Note, by: note_list, with: {{task: id}}}}
      owner: {{one: User, key: owner}}
      parts: {{many: Part, in: parts}}
  Note: {{about: a remark, key: [id], fields: {{id: string, text: markdown, task: string{more}}}}}
  Part: {{about: a piece of a task, key: [id], fields: {{id: string, size: {level}}}}}
capabilities:
  user_list: {{query: User, http: GET /v{version}/users}}
  user_get: {{get: User, http: "GET /users/{{id}}"}}
  task_list:
    query: Task
    params: {{level: {level}, owner: {{ref: User}}}}
    http: GET /v{version}/tasks?level={{level}}&owner={{owner}}
  task_get: {{get: Task, http: "GET /tasks/{{id}}"}}
  task_search: {{search: Task, text: q, http: "GET /tasks/search?q={{q}}"}}
  task_{write}:
    action: Task
    about: bring it to an end
    params: {{note: {{type: markdown, required: true}}}}
    http: POST /tasks/{{id}}/{write}
    body: {{note: "{{note}}"}}
  task_add:
    create: Task
    about: add one
    params: {{title: {{type: string, required: true}}, level: {level}}}
    http: POST /tasks
    body: {{title: "{{title}}", level: "{{level}}"}}
  note_list:
    query: Note
    params: {{task: {{type: string, required: true}}}}
    http: GET /tasks/{{task}}/notes
  note_drop: {{delete: Note, about: remove it, http: "DELETE /notes/{{id}}"}}
"#
    );
    catalog::read("made.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}"))
}

static OFFERED: LazyLock<BTreeMap<(&str, u32), Arc<Catalog>>> = LazyLock::new(|| {
    let all = APIS.iter().flat_map(|api| (1..=VERSIONS).map(move |version| (*api, version)));
    all.map(|(api, version)| ((api, version), Arc::new(made(api, version)))).collect()
});

/// A session as the store would hold it, and what has been seen of it.
#[derive(Default)]
struct Session {
    ledger: Ledger,
    pinned: Catalogs,
    /// Programs, and the plan each had when it was taught.
    programs: BTreeMap<String, Digest>,
}

impl Session {
    fn call(&mut self, dice: &mut Dice, newest: &BTreeMap<&str, u32>) {
        let mut catalogs = self.pinned.clone();
        let mut seeds = Vec::new();
        for _ in 0..=dice.roll(3) {
            let api = *dice.of(&APIS);
            let id = CatalogId::parse(api).unwrap();
            catalogs.entry(id.clone()).or_insert_with(|| OFFERED[&(api, newest[api])].clone());
            let mut seed = Seed::new(id, *dice.of(&ENTITIES));
            if dice.roll(4) == 0 {
                seed.capabilities.push((*dice.of(&["*", "task_add", "task_close", "note_drop"])).to_owned());
            }
            seeds.push(seed);
        }
        let ranked: Vec<String> = (dice.roll(6) == 0).then(|| "alpha:task_add".to_owned()).into_iter().collect();
        let intent = *dice.of(&[None, Some("close old tasks"), Some("look around"), Some("add a task, remove notes")]);
        let ask = TeachRequest { seeds: &seeds, ranked: &ranked, intent, threshold: Teaching::default().writes };
        let Ok(extended) = self.ledger.extend(&catalogs, &ask) else { return };
        let mut shuffled = seeds.clone();
        shuffled.reverse();
        let again = self.ledger.extend(&catalogs, &TeachRequest { seeds: &shuffled, ..ask }).unwrap();
        assert_eq!(again.ledger, extended.ledger, "the order of seeds is no matter");
        assert_eq!(again.wave, extended.wave);
        only_grew(&self.ledger, &extended.ledger);
        catalogs.retain(|id, _| extended.ledger.catalogs().contains(id));
        let style = *dice.of(&[SlotStyle::Symbols, SlotStyle::Names]);
        let rendered = render_wave(style, &self.ledger, &extended.ledger, &catalogs, &extended.wave);
        assert!(rendered.dropped.is_empty(), "{:?}", rendered.dropped);
        (self.ledger, self.pinned) = (extended.ledger, catalogs);
        self.learn(dice, &rendered.text);
    }

    /// Some rows of the table, filled in.
    fn learn(&mut self, dice: &mut Dice, table: &str) {
        let scope = self.ledger.scope(&self.pinned);
        let rows: Vec<&str> = table.lines().filter_map(|l| Some(l.split_once('\t')?.0)).skip(1).collect();
        for _ in 0..2 {
            if rows.is_empty() {
                return;
            }
            let filled = dice.of(&rows).replace("<<T", "\"done\"");
            let program = ["\"a\"", "7"].map(|value| filled.replace('$', value));
            if let Some((program, digest)) = program.into_iter().find_map(|p| Some((p.clone(), planned(&scope, &p)?))) {
                self.programs.insert(program, digest);
            }
        }
    }

    fn still_means_the_same(&self) {
        let scope = self.ledger.scope(&self.pinned);
        for (program, digest) in &self.programs {
            assert_eq!(planned(&scope, program), Some(*digest), "`{program}` changed its plan");
        }
    }
}

fn planned(scope: &lang::scope::Scope, program: &str) -> Option<Digest> {
    let limits = Limits::default();
    let parsed = syntax::parse(program, &limits);
    let (checked, _) = check::check(scope, &parsed.program).ok()?;
    parsed.diagnostics.is_empty().then(|| plan::plan(&checked, &limits).digest)
}

/// Each list of the ledger is the old one and then what is new: no number moved, none was left out.
fn only_grew(before: &Ledger, after: &Ledger) {
    let (before, after) = (serde_json::to_value(before).unwrap(), serde_json::to_value(after).unwrap());
    for (list, old) in before.as_object().unwrap() {
        let (old, new) = (old.as_array().unwrap(), after[list].as_array().unwrap());
        assert!(new.starts_with(old), "{list} was rewritten");
        let distinct: std::collections::BTreeSet<String> = new.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), new.len(), "{list} has one entry twice");
    }
}

#[test]
fn no_symbol_ever_changes_its_meaning() {
    let mut learned = 0;
    for sequence in 0..SEQUENCES {
        let mut dice = Dice(sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let mut newest: BTreeMap<&str, u32> = APIS.iter().map(|api| (*api, 1)).collect();
        let mut session = Session::default();
        for _ in 0..3 + dice.roll(4) {
            match dice.roll(5) {
                // A catalog is reloaded: what is pinned stays, what is not is taken from the newest.
                0 => *newest.get_mut(dice.of(&APIS)).unwrap() = 1 + dice.roll(u64::from(VERSIONS)) as u32,
                // A restart: the session is what was stored, and so are its catalogs.
                1 => {
                    let stored = serde_json::to_vec(&session.ledger).unwrap();
                    session.ledger = serde_json::from_slice(&stored).unwrap();
                    let read =
                        |c: &Arc<Catalog>| catalog::from_canonical(c.canonical().as_bytes(), c.digest()).unwrap();
                    session.pinned = session.pinned.iter().map(|(id, c)| (id.clone(), Arc::new(read(c)))).collect();
                }
                _ => session.call(&mut dice, &newest),
            }
        }
        session.still_means_the_same();
        learned += session.programs.len();
    }
    assert!(learned as u64 > SEQUENCES, "the property looked at {learned} programs");
}
