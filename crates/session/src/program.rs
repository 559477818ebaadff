//! `plasm`: a program to a plan, and nothing leaves the house. Every stage between can be looked at.
//! Invariant: this is the only place where text becomes a plan; `run` calls it too.

use base::{Diagnostic, Digest, Limits};
use lang::check::{self, Checked};
use lang::plan::{self, Plan};
use lang::scope::Scope;
use lang::syntax::{self, Parsed};

use crate::caller::Caller;
use crate::error::Error;
use crate::load::Session;
use crate::service::Service;

#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// A slot or a canonical session id.
    pub session: String,
    pub program: String,
}

#[derive(Debug)]
pub struct Planned {
    pub slot: base::Slot,
    pub plan: Plan,
    /// What was mended on the way.
    pub notes: Vec<Diagnostic>,
    pub explained: String,
}

/// One program at every stage; a stage that was not reached is `None` and the diagnostics say why.
#[derive(Debug)]
pub struct Stages {
    pub parsed: Parsed,
    pub checked: Option<Checked>,
    pub plan: Option<Plan>,
    pub diagnostics: Vec<Diagnostic>,
}

pub fn stages(scope: &Scope, program: &str, limits: &Limits) -> Stages {
    let parsed = syntax::parse(program, limits);
    let mut diagnostics = parsed.diagnostics.clone();
    if let Some(over) = parsed.program.roots.get(limits.returns) {
        let message = format!("a program has at most {} results", limits.returns);
        diagnostics.push(Diagnostic::error(lang::codes::TOO_MANY_STATEMENTS, over.span, message));
    }
    // A tree with holes in it would only yield mistakes that are not there.
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Stages { parsed, checked: None, plan: None, diagnostics };
    }
    match check::check(scope, &parsed.program) {
        Ok((checked, notes)) => {
            diagnostics.extend(notes);
            let plan = plan::plan(&checked, limits);
            Stages { parsed, checked: Some(checked), plan: Some(plan), diagnostics }
        }
        Err(found) => {
            diagnostics.extend(found);
            Stages { parsed, checked: None, plan: None, diagnostics }
        }
    }
}

impl Service {
    pub async fn plan(&self, caller: &Caller, request: &PlanRequest) -> Result<Planned, Error> {
        let session = self.session(caller, &request.session).await?;
        self.plan_in(&session, &request.program)
    }

    pub(crate) fn plan_in(&self, session: &Session, program: &str) -> Result<Planned, Error> {
        let scope = session.execute.ledger.scope(&session.catalogs);
        let stages = stages(&scope, program, &self.limits);
        let Some(plan) = stages.plan else {
            // A program over its limit is not kept to be shown back.
            let text: String = program.chars().take(self.limits.program_bytes).collect();
            return Err(Error::Program { text, diagnostics: stages.diagnostics });
        };
        tracing::debug!(plan = %plan_name(plan.digest), steps = plan.steps.len(), "planned");
        let explained = plan::explain(&plan);
        Ok(Planned { slot: session.slot, plan, notes: stages.diagnostics, explained })
    }
}

fn plan_name(digest: Digest) -> String {
    digest.short()
}
