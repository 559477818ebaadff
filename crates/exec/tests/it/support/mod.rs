//! Support for the tests: a builder of plans, the demo API, and a catalog with writes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{CatalogId, Digest, Limits, Method, Origin, Payload, Request, RunId, TenantId};
use catalog::{Catalog, EffectClass, Type};
use exec::{CancellationToken, Continuation, Ctx, Outcome, ProgressSink, Receipts, run};
use lang::plan::{
    Args, Bounds, CapabilityRef, Column, EntityRef, Expr, Path, Plan, PlanResult, RowPart, Shape, Step, StepKind,
    Verdict,
};
use lang::scope::{ExposedEntity, Scope};
use ports::Upstream;
use ports::upstream::Call;
use serde_json::{Value, json};
use testkit::memory::{ManualClock, MapSecrets};
use tokio::sync::Semaphore;
use upstream::HttpUpstream;

/// A builder of plans for one catalog. Its steps have generous bounds unless a test sets others.
pub struct Plans {
    pub catalog: Arc<Catalog>,
    pub steps: Vec<Step>,
    /// The index of the previous effect step. The next effect must run after it.
    last_effect: Option<usize>,
}

impl Plans {
    pub fn new(catalog: &Arc<Catalog>) -> Self {
        Self { catalog: catalog.clone(), steps: Vec::new(), last_effect: None }
    }

    pub fn call(&self, capability: &str) -> CapabilityRef {
        CapabilityRef { catalog: self.catalog.id.clone(), capability: capability.into() }
    }

    pub fn entity(&self, entity: &str) -> EntityRef {
        EntityRef { catalog: self.catalog.id.clone(), entity: entity.into() }
    }

    /// Adds a step whose rows belong to an entity. The entity's fields are the columns.
    pub fn rows_of(&mut self, entity: &str, kind: StepKind) -> usize {
        let fields = self.catalog.entity(entity).unwrap().fields.values();
        let columns = fields.map(|f| Column { name: f.name.as_str().into(), kind: f.kind.clone() }).collect();
        let of = Some(self.entity(entity));
        self.add(kind, of, columns)
    }

    /// Adds a step whose rows are constructed by the program.
    pub fn made_rows(&mut self, columns: &[(&str, Type)], kind: StepKind) -> usize {
        let columns = columns.iter().map(|(n, k)| Column { name: (*n).into(), kind: k.clone() }).collect();
        self.add(kind, None, columns)
    }

    /// Adds a step that returns rows of its input.
    pub fn same_rows(&mut self, kind: StepKind) -> usize {
        let input = &self.steps[kind.input().unwrap()];
        let of = input.of.clone();
        let columns = input.columns.to_vec();
        self.add(kind, of, columns)
    }

    fn add(&mut self, kind: StepKind, of: Option<EntityRef>, columns: Vec<Column>) -> usize {
        let is_effect = matches!(kind, StepKind::Effect { .. });
        let after = if is_effect { self.last_effect.replace(self.steps.len()) } else { None };
        self.steps.push(Step {
            kind,
            of,
            columns: columns.into(),
            shape: Shape::List,
            class: if is_effect { EffectClass::Write } else { EffectClass::Read },
            calls: 1_000,
            rows: 1_000,
            effects: if is_effect { 100 } else { 0 },
            after,
            label: None,
            description: None,
        });
        self.steps.len() - 1
    }

    pub fn label(&mut self, step: usize, label: &str) {
        self.steps[step].label = Some(label.into());
    }

    pub fn query(&mut self, entity: &str, capability: &str, args: Args) -> usize {
        let call = self.call(capability);
        self.rows_of(entity, StepKind::Query { call, args, limit: None, page_size: None, fields: None })
    }

    pub fn get(&mut self, entity: &str, capability: &str, args: Args) -> usize {
        let call = self.call(capability);
        self.rows_of(entity, StepKind::Get { call, args, fields: None })
    }

    pub fn effect(&mut self, entity: &str, capability: &str, args: Args, each: Option<usize>) -> usize {
        let call = self.call(capability);
        self.rows_of(entity, StepKind::Effect { call, args, each })
    }

    pub fn literals(&mut self, items: &[Value]) -> usize {
        let items = items.iter().cloned().map(Expr::Value).collect();
        self.made_rows(&[("value", Type::Json)], StepKind::Rows { items })
    }

    /// Returns a plan that returns the rows of every step. A result is named by the step's label, or `s{n}`.
    pub fn plan(&self) -> Plan {
        let result = |(index, step): (usize, &Step)| PlanResult {
            label: step.label.as_ref().map_or_else(|| format!("s{index}"), ToString::to_string),
            step: index,
        };
        let returns = self.steps.iter().enumerate().map(result).collect();
        let mut bounds = Bounds { rows: usize::MAX, bytes: u64::MAX, ..Bounds::default() };
        for step in self.steps.iter().filter(|s| s.kind.calls_api()) {
            *bounds.calls.entry(self.catalog.id.clone()).or_default() += step.calls;
        }
        Plan {
            steps: self.steps.clone(),
            returns,
            catalogs: vec![(self.catalog.id.clone(), self.catalog.digest())],
            digest: Digest::of(b"by hand"),
            verdict: Verdict::Ok,
            bounds,
            warnings: Vec::new(),
        }
    }
}

pub fn args(pairs: &[(&str, Expr)]) -> Args {
    pairs.iter().map(|(name, expr)| ((*name).into(), expr.clone())).collect()
}

pub fn value(value: Value) -> Expr {
    Expr::Value(value)
}

pub fn path(dotted: &str) -> Path {
    dotted.split('.').filter(|p| !p.is_empty()).map(Into::into).collect()
}

/// Returns an expression for the value at a path of the current row.
pub fn row(dotted: &str) -> Expr {
    Expr::Row(RowPart::Path(path(dotted)))
}

/// Returns an expression for the value at a path of the only row of an earlier step.
pub fn of_step(step: usize, dotted: &str) -> Expr {
    Expr::Step { step, take: RowPart::Path(path(dotted)), many: false }
}

/// Returns the catalog `writes.yaml` with its origin replaced.
pub fn writes_catalog(origin: &str) -> Arc<Catalog> {
    let text = include_str!("writes.yaml").replace("ORIGIN", origin);
    Arc::new(catalog::read("writes.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}")))
}

/// Returns the plan of a program. All entities of the catalog are taught, so the program may use names and symbols.
pub fn plan_program(catalog: &Arc<Catalog>, program: &str, limits: &Limits) -> Plan {
    let exposed = |(index, (name, entity)): (usize, (&String, &catalog::Entity))| ExposedEntity {
        symbol: format!("e{}", index + 1),
        catalog: catalog.clone(),
        entity: name.clone(),
        relations: entity.relations.keys().enumerate().map(|(n, r)| (format!("r{index}{n}"), r.clone())).collect(),
        methods: catalog.methods(name).enumerate().map(|(n, c)| (format!("m{index}{n}"), c.name.clone())).collect(),
    };
    let scope = Scope { entities: catalog.entities.iter().enumerate().map(exposed).collect(), ..Scope::default() };
    let parsed = lang::syntax::parse(program, limits);
    assert!(parsed.diagnostics.is_empty(), "{program}: {:?}", parsed.diagnostics);
    let (checked, _) = lang::check::check(&scope, &parsed.program).unwrap_or_else(|e| panic!("{program}: {e:?}"));
    lang::plan::plan(&checked, limits)
}

pub fn run_id() -> RunId {
    RunId::from_random([7; 16])
}

fn catalogs(catalog: &Arc<Catalog>) -> BTreeMap<CatalogId, Arc<Catalog>> {
    BTreeMap::from([(catalog.id.clone(), catalog.clone())])
}

/// Runs a plan from the builder with a store for receipts.
pub async fn run_plans(upstream: &dyn Upstream, plans: &Plans, receipts: &dyn Receipts) -> Outcome {
    let with = RunOptions { receipts: Some(receipts), ..RunOptions::default() };
    run_with(upstream, &plans.plan(), &plans.catalog, with).await
}

/// The optional parts of a test run's context.
#[derive(Default)]
pub struct RunOptions<'a> {
    pub limits: Limits,
    pub receipts: Option<&'a dyn Receipts>,
    pub cancel: CancellationToken,
    pub progress: Option<&'a dyn ProgressSink>,
    pub pages: Option<&'a BTreeMap<String, Continuation>>,
}

pub async fn run_with(upstream: &dyn Upstream, plan: &Plan, catalog: &Arc<Catalog>, with: RunOptions<'_>) -> Outcome {
    let tenant = TenantId::local();
    let calls = Semaphore::new(with.limits.calls_per_session);
    let catalogs = catalogs(catalog);
    let mut ctx = Ctx::new(upstream, &tenant, &catalogs, &with.limits, &calls);
    if let Some(receipts) = with.receipts {
        ctx = ctx.with_effects(run_id(), receipts);
    }
    ctx.cancel = with.cancel;
    ctx.progress = with.progress;
    ctx.pages = with.pages;
    run(&ctx, plan).await
}

/// Returns the rows of a return of the plan as JSON.
pub fn rows(outcome: &Outcome, index: usize) -> Value {
    match &outcome.returns[index].result {
        Ok(set) => set.rows.iter().map(|row| Value::Object(catalog::Row::clone(row))).collect(),
        Err(error) => panic!("{}: {error}", outcome.returns[index].label),
    }
}

/// Returns the error message of a return of the plan, or `ok`.
pub fn error(outcome: &Outcome, index: usize) -> String {
    outcome.returns[index].result.as_ref().map_or_else(|error| error.to_string(), |_| "ok".to_owned())
}

/// A running demo API with a client. Its routes below `/control` set faults and return counts.
pub struct Demo {
    pub address: SocketAddr,
    pub http: HttpUpstream,
}

impl Demo {
    pub async fn start(timeout: Duration) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(testapi::serve(listener));
        let options = upstream::Options { request_timeout: timeout, ..upstream::Options::default() };
        let http = HttpUpstream::new(options, Arc::new(MapSecrets::new()), Arc::new(ManualClock::default())).unwrap();
        Self { address, http }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        writes_catalog(&format!("http://{}", self.address))
    }

    async fn control(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let request = Request {
            method,
            origin: Origin::parse(&format!("http://{}", self.address)).unwrap(),
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: body.map(Payload::json),
            auth: None,
            anonymous: false,
        };
        let call = Call { tenant: TenantId::local(), request, repeatable: false, pace: None };
        let response = self.http.send(call).await.unwrap();
        serde_json::from_slice(&response.body).unwrap_or_default()
    }

    /// Resets the data of the demo API, and sets a fault for every request with this method; `*` means any method.
    pub async fn set_fault(&self, method: &str, fault: &str) {
        self.control(Method::Post, "/control/reset", Some(json!({}))).await;
        if !fault.is_empty() {
            let mut rule = json!({"fault": fault, "path": "/api/*"});
            if method != "*" {
                rule["method"] = json!(method);
            }
            let rules = json!({"rules": [rule]});
            let answer = self.control(Method::Post, "/control/faults", Some(rules)).await;
            assert!(answer.get("error").is_none(), "{answer}");
        }
    }

    /// Returns the method and path of each effect that the demo API recorded.
    pub async fn effects(&self) -> Vec<String> {
        let effects = self.control(Method::Get, "/control/effects", None).await;
        let text = |effect: &Value, name: &str| effect[name].as_str().unwrap_or_default().to_owned();
        effects.as_array().unwrap().iter().map(|e| format!("{} {}", text(e, "method"), text(e, "path"))).collect()
    }
}
