//! Tests of a session's stability over random sequences of calls, reloads and restarts: no symbol changes its meaning, the
//! numbers have no gaps, and a valid program stays valid and keeps its plan.

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

/// A pseudo-random number generator with the same sequence on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.roll(items.len() as u64) as usize]
    }
}

/// Returns one version of a catalog. Other versions rename, add and retype slots and capabilities. A session with an older pin
/// must not see these changes.
fn catalog_of(api: &str, version: u32) -> Catalog {
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
    all.map(|(api, version)| ((api, version), Arc::new(catalog_of(api, version)))).collect()
});

/// The stored data of a session, and the programs that were valid in the session.
#[derive(Default)]
struct TaughtSession {
    ledger: Ledger,
    pinned: Catalogs,
    /// Programs with the digest of the plan that each program had when its row was taught.
    programs: BTreeMap<String, Digest>,
}

impl TaughtSession {
    /// Extends the session by a random request.
    fn teach(&mut self, dice: &mut Dice, newest: &BTreeMap<&str, u32>) {
        let mut catalogs = self.pinned.clone();
        let mut seeds = Vec::new();
        for _ in 0..=dice.roll(3) {
            let api = *dice.pick(&APIS);
            let id = CatalogId::parse(api).unwrap();
            catalogs.entry(id.clone()).or_insert_with(|| OFFERED[&(api, newest[api])].clone());
            let mut seed = Seed::new(id, *dice.pick(&ENTITIES));
            if dice.roll(4) == 0 {
                seed.capabilities.push((*dice.pick(&["*", "task_add", "task_close", "note_drop"])).to_owned());
            }
            seeds.push(seed);
        }
        let ranked: Vec<String> = (dice.roll(6) == 0).then(|| "alpha:task_add".to_owned()).into_iter().collect();
        let intent =
            *dice.pick(&[None, Some("close old tasks"), Some("look around"), Some("add a task, remove notes")]);
        let request = TeachRequest { seeds: &seeds, ranked: &ranked, intent, threshold: Teaching::default().writes };
        let Ok(extended) = self.ledger.extend(&catalogs, &request) else { return };
        let mut reversed_seeds = seeds.clone();
        reversed_seeds.reverse();
        let reversed = self.ledger.extend(&catalogs, &TeachRequest { seeds: &reversed_seeds, ..request }).unwrap();
        assert_eq!(reversed.ledger, extended.ledger, "the order of seeds does not matter");
        assert_eq!(reversed.wave, extended.wave);
        assert_only_grew(&self.ledger, &extended.ledger);
        catalogs.retain(|id, _| extended.ledger.catalogs().contains(id));
        let style = *dice.pick(&[SlotStyle::Symbols, SlotStyle::Names]);
        let rendered = render_wave(style, &self.ledger, &extended.ledger, &catalogs, &extended.wave);
        assert!(rendered.dropped.is_empty(), "{:?}", rendered.dropped);
        (self.ledger, self.pinned) = (extended.ledger, catalogs);
        self.learn(dice, &rendered.text);
    }

    /// Makes programs from some rows of the table, and stores the valid programs with the digests of their plans.
    fn learn(&mut self, dice: &mut Dice, table: &str) {
        let scope = self.ledger.scope(&self.pinned);
        let rows: Vec<&str> = table.lines().filter_map(|l| Some(l.split_once('\t')?.0)).skip(1).collect();
        for _ in 0..2 {
            if rows.is_empty() {
                return;
            }
            let filled = dice.pick(&rows).replace("<<T", "\"done\"");
            let program = ["\"a\"", "7"].map(|value| filled.replace('$', value));
            if let Some((program, digest)) =
                program.into_iter().find_map(|p| Some((p.clone(), plan_digest(&scope, &p)?)))
            {
                self.programs.insert(program, digest);
            }
        }
    }

    fn assert_plans_unchanged(&self) {
        let scope = self.ledger.scope(&self.pinned);
        for (program, digest) in &self.programs {
            assert_eq!(plan_digest(&scope, program), Some(*digest), "`{program}` changed its plan");
        }
    }
}

/// Returns the digest of the program's plan; `None` for an invalid program.
fn plan_digest(scope: &lang::scope::Scope, program: &str) -> Option<Digest> {
    let limits = Limits::default();
    let parsed = syntax::parse(program, &limits);
    let (checked, _) = check::check(scope, &parsed.program).ok()?;
    parsed.diagnostics.is_empty().then(|| plan::plan(&checked, &limits).digest)
}

/// Asserts that each list of the ledger starts with the old list, so that no number changed, and that no entry occurs twice.
fn assert_only_grew(before: &Ledger, after: &Ledger) {
    let before = serde_json::to_value(before).unwrap();
    let after = serde_json::to_value(after).unwrap();
    for (list, old) in before.as_object().unwrap() {
        let old = old.as_array().unwrap();
        let new = after[list].as_array().unwrap();
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
        let mut session = TaughtSession::default();
        for _ in 0..3 + dice.roll(4) {
            match dice.roll(5) {
                // A reload offers another version of a catalog. Pinned catalogs stay unchanged; the next new pin uses the
                // offered version.
                0 => *newest.get_mut(dice.pick(&APIS)).unwrap() = 1 + dice.roll(u64::from(VERSIONS)) as u32,
                // A restart loads the ledger and the catalogs from their stored form.
                1 => {
                    let stored = serde_json::to_vec(&session.ledger).unwrap();
                    session.ledger = serde_json::from_slice(&stored).unwrap();
                    let read =
                        |c: &Arc<Catalog>| catalog::from_canonical(c.canonical().as_bytes(), c.digest()).unwrap();
                    session.pinned = session.pinned.iter().map(|(id, c)| (id.clone(), Arc::new(read(c)))).collect();
                }
                _ => session.teach(&mut dice, &newest),
            }
        }
        session.assert_plans_unchanged();
        learned += session.programs.len();
    }
    assert!(learned as u64 > SEQUENCES, "only {learned} programs were checked");
}
